import { InvalidArgumentError } from '../errors/admin-errors.js';
import type { RepairRecord } from '../store/admin-store.js';

export interface ValueWriter {
  /** The text that is stored for a value. @throws or rejects when it cannot be stored. */
  readonly encode: (value: unknown) => string | Promise<string>;
  /** The same for an error, whatever was thrown. */
  readonly encodeError: (thrown: unknown) => string | Promise<string>;
}

/** What a step's repair says, by the key that is true; with the keys that it has besides. */
const FORMS: Readonly<Record<string, 'result' | 'error' | undefined>> = {
  happened: 'result',
  failed: 'error',
  didNotHappen: undefined,
  skip: 'result',
  retry: undefined,
};

/**
 * The form in which a repair is recorded.
 * @throws InvalidArgumentError, ValueNotSerializableError, PayloadTooLargeError
 */
export async function repairRecord(repair: unknown, { encode, encodeError }: ValueWriter): Promise<RepairRecord> {
  const { form, value } = parse(repair);
  switch (form) {
    case 'happened':
      return { repair: 'result', output: await encode(value), error: null };
    case 'skip':
      return { repair: 'skip', output: await encode(value), error: null };
    case 'failed':
      return { repair: 'error', output: null, error: await encodeError(value) };
    case 'didNotHappen':
      return { repair: 'not-happened', output: null, error: null };
    default:
      return { repair: 'retry', output: null, error: null };
  }
}

function parse(repair: unknown): { readonly form: string; readonly value: unknown } {
  if (typeof repair === 'object' && repair !== null) {
    const given = repair as Readonly<Record<string, unknown>>;
    const keys = Object.keys(given);
    const [form, ...more] = keys.filter((key) => Object.hasOwn(FORMS, key));
    if (form !== undefined && more.length === 0 && given[form] === true) {
      const valueKey = FORMS[form];
      const others = keys.filter((key) => key !== form && key !== valueKey);
      // Only to skip a step needs no value: another one that was forgotten would be recorded as undefined.
      const isWhole = valueKey === undefined || form === 'skip' || valueKey in given;
      if (others.length === 0 && isWhole) return { form, value: valueKey === undefined ? undefined : given[valueKey] };
    }
  }
  throw new InvalidArgumentError(
    'The repair of a step is { happened: true, result }, { failed: true, error }, { didNotHappen: true }, ' +
      '{ skip: true, result } or { retry: true }. Nothing was written.',
  );
}
