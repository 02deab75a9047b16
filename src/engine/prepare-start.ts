import type { StartOptions } from '../api/workflow-options.js';
import { InvalidArgumentError } from '../errors/admin-errors.js';
import { PayloadTooLargeError } from '../errors/value-errors.js';
import type { WorkflowStart } from '../store/store.js';
import type { WorkflowDefinition } from './definitions.js';
import { checkText } from './check-text.js';
import { wholeNumber } from './whole-number.js';
import { parseDuration } from './duration.js';
import { checkKnownOptions } from './known-options.js';
import { checkSchema } from './schema.js';
import type { Serializer } from './serializer.js';
import { whenHere, type Soon } from './soon.js';
import { checkWorkflowId } from './workflow-id.js';

const LONGEST_INSTANCE_BYTES = 255;

/** Attributes are part of the hot row. */
const MAX_ATTRIBUTES_BYTES = 64 * 1024;

const START_OPTIONS: ReadonlySet<string> = new Set<keyof StartOptions>([
  'workflowId',
  'instance',
  'timeout',
  'maxAttempts',
  'attributes',
  'onParentCancel',
]);
const PARENT_CANCEL: ReadonlySet<unknown> = new Set<NonNullable<StartOptions['onParentCancel']>>(['cancel', 'abandon']);

/**
 * Checks everything a workflow is to be started with, and encodes it. Nothing has been written when this throws.
 * @throws InvalidArgumentError, SchemaViolationError, ValueNotSerializableError, PayloadTooLargeError
 */
export function prepareStart(
  definition: WorkflowDefinition,
  args: readonly unknown[],
  options: StartOptions,
  workflowId: string,
  serializer: Serializer,
): Soon<WorkflowStart> {
  checkWorkflowId(workflowId);
  checkKnownOptions(options, START_OPTIONS, 'start');
  const { instance, onParentCancel } = options;
  if (instance !== undefined) checkText(instance, LONGEST_INSTANCE_BYTES, 'The option "instance"');
  if (onParentCancel !== undefined && !PARENT_CANCEL.has(onParentCancel)) {
    throw new InvalidArgumentError('The option "onParentCancel" is "cancel" or "abandon".');
  }
  const { name, input: schema } = definition;
  const checked =
    schema === undefined
      ? args
      : checkSchema(schema, args[0], `input of workflow "${name}"`).then((first) => [first, ...args.slice(1)]);
  const input = whenHere(checked, (values: readonly unknown[]) => serializer.encode(values));
  return whenHere(input, (text) => ({
    workflowId,
    name,
    instance: instance ?? null,
    input: text,
    maxAttempts:
      options.maxAttempts === undefined
        ? definition.maxAttempts
        : wholeNumber(options.maxAttempts, 1, 2 ** 31 - 1, 'maxAttempts'),
    timeoutMs: options.timeout === undefined ? definition.timeoutMs : parseDuration(options.timeout, 'timeout'),
    attributes: options.attributes === undefined ? null : encodeAttributes(options.attributes),
  }));
}

/** JSON would leave it out, or make something else of it, without a word. What says itself how it is written (a Date) may. */
function refuseLoss(this: unknown, key: string, value: unknown): unknown {
  const isLost =
    typeof value === 'function' ||
    typeof value === 'symbol' ||
    (typeof value === 'number' && !Number.isFinite(value)) ||
    (typeof value === 'object' && value !== null && !Array.isArray(value) && !isPlain(value));
  if (!isLost) return value;
  const where = key === '' ? '' : `: "${key}" holds what JSON does not have`;
  throw new InvalidArgumentError(`attributes must be a plain JSON object${where}.`);
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

function encodeAttributes(attributes: Readonly<Record<string, unknown>>): string {
  let text: unknown;
  try {
    text = JSON.stringify(attributes, refuseLoss);
  } catch (cause) {
    if (cause instanceof InvalidArgumentError) throw cause;
    throw new InvalidArgumentError('attributes must be a plain JSON object.', { cause });
  }
  // What PostgreSQL's jsonb cannot hold would be refused later, with the whole start.
  if (typeof text !== 'string' || !text.startsWith('{') || /\\u0000|\\ud[89a-f]/i.test(text)) {
    throw new InvalidArgumentError(
      'attributes must be a plain JSON object, without NUL or half surrogate pairs in its texts.',
    );
  }
  const bytes = Buffer.byteLength(text);
  if (bytes > MAX_ATTRIBUTES_BYTES) {
    throw new PayloadTooLargeError({ actualBytes: bytes, limitBytes: MAX_ATTRIBUTES_BYTES });
  }
  return text;
}
