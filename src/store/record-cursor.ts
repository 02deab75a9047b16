import { InvalidArgumentError } from '../errors/admin-errors.js';

/** Part of a cursor: a whole number written as digits, so that none of its precision is lost, or a text. */
export type CursorPart = string;

const WHOLE_NUMBER = /^-?\d{1,18}$/;
const LONGEST_CURSOR = 4_096;

/** What a list's cursor consists of; `list` names the list and its order, so that one is not taken for another's. */
export interface CursorForm {
  readonly list: string;
  readonly parts: readonly ('number' | 'text' | 'uuid')[];
}

const CHECKS: Readonly<Record<CursorForm['parts'][number], (part: string) => boolean>> = {
  number: (part) => WHOLE_NUMBER.test(part),
  text: (part) => !/\0|\p{Surrogate}/u.test(part),
  uuid: (part) => /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/.test(part),
};

/** Opaque to callers: only that it can be passed on, to the same list, is promised. */
export function encodeCursor(form: CursorForm, parts: readonly CursorPart[]): string {
  return Buffer.from(JSON.stringify([form.list, ...parts])).toString('base64url');
}

/**
 * The parts of a cursor that {@link encodeCursor} made; null for the first page.
 * @throws InvalidArgumentError for any other text.
 */
export function decodeCursor(form: CursorForm, cursor: string | null): readonly CursorPart[] | null {
  if (cursor === null) return null;
  const parsed = cursor.length <= LONGEST_CURSOR ? parse(cursor) : undefined;
  if (Array.isArray(parsed) && parsed.length === form.parts.length + 1) {
    const [list, ...parts] = parsed as unknown[];
    const fits = form.parts.every((kind, index) => {
      const part = parts[index];
      return typeof part === 'string' && CHECKS[kind](part);
    });
    if (list === form.list && fits) return parts as string[];
  }
  throw new InvalidArgumentError(
    'The cursor is not one that this list returned, in this order. Start again without a cursor.',
  );
}

function parse(cursor: string): unknown {
  try {
    return JSON.parse(Buffer.from(cursor, 'base64url').toString());
  } catch {
    return undefined;
  }
}
