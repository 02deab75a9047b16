import type { OutcomeRecord, RecordedStep } from '../store/store.js';
import type { WorkflowDefinition } from './definitions.js';
import { checkSchema } from './schema.js';
import type { Serializer } from './serializer.js';

/** The outcome that a returned value is. @throws SchemaViolationError, and what stands in the way of storing it. */
export async function successOf(
  definition: WorkflowDefinition,
  value: unknown,
  serializer: Serializer,
): Promise<OutcomeRecord> {
  const { name, output: schema } = definition;
  const checked = schema === undefined ? value : await checkSchema(schema, value, `output of "${name}"`);
  return { status: 'SUCCESS', output: await serializer.encode(checked), error: null, attention: null };
}

/** The outcome that a thrown value is. */
export async function failureOf(thrown: unknown, serializer: Serializer): Promise<OutcomeRecord> {
  return { status: 'ERROR', output: null, error: await serializer.encodeError(thrown), attention: null };
}

/** Whether there was an intent of a step without a result when the history was read. */
export function hasOpenStep(history: readonly Pick<RecordedStep, 'kind' | 'complete'>[]): boolean {
  return history.some(({ kind, complete }) => kind === 'step' && !complete);
}
