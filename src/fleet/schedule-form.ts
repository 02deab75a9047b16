import { z } from 'zod';
import type { AnySchedule, ScheduleChanges } from '../api/schedule.js';
import { checkText } from '../engine/check-text.js';
import { describeIssues } from '../engine/describe-issues.js';
import { InvalidArgumentError } from '../errors/admin-errors.js';
import { durationForm } from './duration-form.js';

const LONGEST_NAME_BYTES = 255;

const attributes = z.custom<object>((value) => typeof value === 'object' && value !== null, 'must be an object');
const settings = {
  cron: z.string(),
  timeZone: z.string().optional(),
  catchUp: z.enum(['none', 'last', 'all']).optional(),
  overlap: z.enum(['skip', 'queue', 'cancel']).optional(),
  queue: z.string().optional(),
  priority: z.number().optional(),
  key: z.string().optional(),
  timeout: durationForm.optional(),
  maxAttempts: z.number().optional(),
  attributes: attributes.optional(),
  args: z.array(z.unknown()).optional(),
};
const definitionSchema = z.strictObject({
  ...settings,
  name: z.string(),
  workflow: z.custom(
    (value) => typeof value === 'string' || typeof value === 'function',
    'must be a workflow or its name',
  ),
  instance: z.string().optional(),
});
const changesSchema = z.strictObject({
  ...settings,
  cron: settings.cron.optional(),
  queue: settings.queue.nullable(),
  key: settings.key.nullable(),
  timeout: settings.timeout.nullable(),
  attributes: settings.attributes.nullable(),
});

/** @throws InvalidArgumentError naming whatever is not of the documented form. */
export function checkDefinition(definition: AnySchedule): void {
  check(definitionSchema, definition, 'The definition of a schedule is');
  checkScheduleName(definition.name);
}

/** @throws InvalidArgumentError */
export function checkChanges(changes: ScheduleChanges): void {
  check(changesSchema, changes, 'The changes of a schedule are');
}

/** @throws InvalidArgumentError */
export function checkScheduleName(name: unknown): string {
  return checkText(name, LONGEST_NAME_BYTES, 'A schedule name');
}

function check(schema: z.ZodType, value: unknown, what: string): void {
  const checked = schema.safeParse(value);
  if (checked.success) return;
  throw new InvalidArgumentError(`${what} not right (${describeIssues(checked.error)}). Nothing was written.`, {
    cause: checked.error,
  });
}
