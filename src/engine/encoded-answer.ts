import type { EncodedAnswer } from '../store/query-store.js';
import type { RunningExecution } from './execution-host.js';
import type { QueryHandlers } from './query-handlers.js';
import type { Serializer } from './serializer.js';

/**
 * What a query is answered with, as it travels: a copy, so that nobody outside holds the workflow's own objects. Never settles
 * when the execution ends before it has answered.
 */
export async function encodeAnswer(
  handlers: QueryHandlers,
  serializer: Serializer,
  execution: RunningExecution,
  name: string,
  args: readonly unknown[],
): Promise<EncodedAnswer> {
  try {
    return { reply: await serializer.encode(await handlers.answer(execution, name, args)), error: null };
  } catch (error) {
    return { reply: null, error: await serializer.encodeError(error) };
  }
}
