import type { OutcomeRecord, RecordedStep } from '../store/store.js';
import type { WorkflowDefinition } from './definitions.js';
import { checkSchema } from './schema.js';
import type { Serializer } from './serializer.js';
import { whenHere, type Soon } from './soon.js';

/** The outcome that a returned value is. @throws SchemaViolationError, and what stands in the way of storing it. */
export function successOf(definition: WorkflowDefinition, value: unknown, serializer: Serializer): Soon<OutcomeRecord> {
  const { name, output: schema } = definition;
  const encoded =
    schema === undefined
      ? serializer.encode(value)
      : checkSchema(schema, value, `output of "${name}"`).then((checked) => serializer.encode(checked));
  return whenHere(encoded, (output: string) => ({ status: 'SUCCESS', output, error: null, attention: null }));
}

/** The outcome that a thrown value is. */
export async function failureOf(thrown: unknown, serializer: Serializer): Promise<OutcomeRecord> {
  return { status: 'ERROR', output: null, error: await serializer.encodeError(thrown), attention: null };
}

/** Whether there was an intent of a step without a result when the history was read. */
export function hasOpenStep(history: readonly Pick<RecordedStep, 'kind' | 'complete'>[]): boolean {
  return history.some(({ kind, complete }) => kind === 'step' && !complete);
}
