import type { SchemaIssue, StandardSchema } from '../api/standard-schema.js';
import { InvalidArgumentError } from '../errors/admin-errors.js';
import { SchemaViolationError } from '../errors/workflow-errors.js';

/**
 * Returns what the schema makes of the value.
 * @throws SchemaViolationError with a path for each issue.
 */
export async function checkSchema(schema: StandardSchema, value: unknown, what: string): Promise<unknown> {
  const checked = schema['~standard'].validate(value);
  const result = checked instanceof Promise ? await checked : checked;
  if (result.issues === undefined) return result.value;
  const issues = result.issues.map((issue) => ({ path: pathOf(issue), message: issue.message }));
  const list = issues.map(({ path, message }) => `${path}: ${message}`).join('; ');
  throw new SchemaViolationError(`The ${what} does not fit its schema: ${list}`, issues);
}

/** @throws InvalidArgumentError */
export function checkIsSchema(schema: StandardSchema | undefined, what: string): StandardSchema | undefined {
  if (schema === undefined) return undefined;
  // A plain JavaScript caller may give anything. Schemas can be functions (arktype).
  const candidate: unknown = (schema as Partial<StandardSchema> | null)?.['~standard'];
  if (typeof candidate !== 'object' || candidate === null) {
    throw new InvalidArgumentError(`The option "${what}" must be a Standard Schema, for example one of zod.`);
  }
  return schema;
}

function pathOf(issue: SchemaIssue): string {
  const keys = (issue.path ?? []).map((part) => (typeof part === 'object' ? part.key : part));
  return keys.reduce<string>(
    (path, key) => path + (typeof key === 'number' ? `[${String(key)}]` : `.${String(key)}`),
    '$',
  );
}
