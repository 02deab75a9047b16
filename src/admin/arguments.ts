import { z } from 'zod';
import { describeIssues } from '../engine/describe-issues.js';
import { LONGEST_ID_BYTES } from '../engine/workflow-id.js';
import { InvalidArgumentError } from '../errors/admin-errors.js';

/** IDs that one call takes. */
export const MAX_BULK_IDS = 10_000;
export const MAX_PAGE_SIZE = 1_000;
export const DEFAULT_PAGE_SIZE = 100;
/** As for launch. */
const LONGEST_APP_VERSION_BYTES = 200;
const LONGEST_ACTOR_BYTES = 256;
const LONGEST_REASON_BYTES = 4_096;
const LONGEST_CURSOR_LENGTH = 4_096;
const MAX_FILTER_ENTRIES = 100;
/** Years that JavaScript and PostgreSQL write alike. */
const FIRST_DATE = new Date('0001-01-01T00:00:00Z');
const LAST_DATE = new Date('9999-12-31T23:59:59.999Z');

/** Text that the database stores exactly as it is. */
const text = (minBytes: number, maxBytes: number) =>
  z
    .string()
    .refine((value) => Buffer.byteLength(value) >= minBytes && Buffer.byteLength(value) <= maxBytes, {
      error: `must have ${String(minBytes)} to ${String(maxBytes)} bytes`,
    })
    .refine((value) => !/\0|\p{Surrogate}/u.test(value), {
      error: 'must not contain NUL or half of a surrogate pair',
    });

const id = text(1, LONGEST_ID_BYTES);
const step = z.number().refine(Number.isInteger, { error: 'must be a whole number' });
const date = z.date().min(FIRST_DATE).max(LAST_DATE);
const status = z.enum([
  'ENQUEUED',
  'DELAYED',
  'PENDING',
  'SUSPENDED',
  'BLOCKED',
  'SUCCESS',
  'ERROR',
  'CANCELLED',
  'DEAD_LETTER',
]);
const oneOrMore = <Schema extends z.ZodType>(schema: Schema) =>
  z.union([schema, z.array(schema).min(1).max(MAX_FILTER_ENTRIES)]);

const cause = {
  actor: text(1, LONGEST_ACTOR_BYTES).default('unknown'),
  reason: text(0, LONGEST_REASON_BYTES).optional(),
};
const page = {
  limit: z.int().min(1).max(MAX_PAGE_SIZE).default(DEFAULT_PAGE_SIZE),
  cursor: z.string().max(LONGEST_CURSOR_LENGTH).optional(),
};

/** What the methods of Admin take. An option that is not known is refused: a typing error must not be a default. */
export const SCHEMAS = {
  id,
  ids: z.array(z.unknown()).max(MAX_BULK_IDS),
  control: z.strictObject(cause),
  cancel: z.strictObject({
    ...cause,
    children: z.enum(['cancel', 'keep']).default('cancel'),
    compensate: z.boolean().default(false),
  }),
  skipCompensation: z.strictObject({ ...cause, seq: step }),
  prioritize: z.strictObject({
    ...cause,
    priority: z
      .int()
      .min(-(2 ** 31) + 1)
      .max(2 ** 31 - 1),
  }),
  setAppVersion: z.strictObject({ ...cause, appVersion: text(0, LONGEST_APP_VERSION_BYTES) }),
  rewind: z.strictObject({ ...cause, toStep: step }),
  repair: z.strictObject({ ...cause, seq: step, repair: z.unknown(), resume: z.boolean().default(false) }),
  fork: z.strictObject({
    ...cause,
    fromStep: step,
    workflowId: id.optional(),
    appVersion: text(0, LONGEST_ID_BYTES).optional(),
  }),
  delete: z.strictObject({ ...cause, force: z.boolean().default(false) }),
  eventId: z
    .string()
    .regex(/^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i, { error: 'must be a UUID' })
    .transform((value) => value.toLowerCase()),
  events: z.strictObject({
    ...page,
    state: z.enum(['pending', 'dead']).optional(),
    topic: id.optional(),
    payload: z.boolean().default(false),
  }),
  attention: z.strictObject({ ...page, code: oneOrMore(id).optional() }),
  get: z.strictObject({ payload: z.boolean().default(false) }),
  page: z.strictObject(page),
  steps: z.strictObject({ ...page, payload: z.boolean().default(false) }),
  list: z.strictObject({
    ...page,
    status: oneOrMore(status).optional(),
    name: oneOrMore(id).optional(),
    idPrefix: text(0, LONGEST_ID_BYTES).optional(),
    executorId: id.optional(),
    parentId: id.optional(),
    appVersion: text(0, LONGEST_ID_BYTES).optional(),
    queue: id.optional(),
    key: id.optional(),
    attention: z.boolean().optional(),
    createdFrom: date.optional(),
    createdBefore: date.optional(),
    order: z.enum(['newest-first', 'oldest-first']).default('newest-first'),
    payload: z.boolean().default(false),
  }),
} as const;

/** @throws InvalidArgumentError that says what is wrong with which part, and never repeats a value. */
export function parseArgument<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
  what: string,
): z.output<Schema> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new InvalidArgumentError(
    `${what}: not of the documented form (${describeIssues(parsed.error)}). Nothing was written.`,
    { cause: parsed.error },
  );
}
