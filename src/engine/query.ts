import type { Query, QueryDefinitionOptions } from '../api/signals.js';
import { parseDuration } from './duration.js';
import { checkIsFunction, checkKnownOptions } from './known-options.js';
import { checkDefinedName } from './message-arguments.js';
import { requireDurable } from './scope.js';

const QUERY_OPTIONS: ReadonlySet<string> = new Set<keyof QueryDefinitionOptions>(['timeout']);
const DEFAULT_TIMEOUT_MS = 10_000;

/**
 * A question about a running workflow's state. Define it once, beside the workflow, and use it on both sides.
 *
 * @param name 1 to 200 bytes.
 * @throws InvalidArgumentError
 * @example
 * const progress = defineQuery<[], number>('progress');
 * progress.handle(() => done / total); // in the workflow
 * await handle.query(progress); // outside
 */
export function defineQuery<Arguments extends unknown[] = [], Result = unknown>(
  name: string,
  options: QueryDefinitionOptions = {},
): Query<Arguments, Result> {
  checkDefinedName(name, 'The name of a query');
  checkKnownOptions(options, QUERY_OPTIONS, 'defineQuery');
  return {
    kind: 'query',
    name,
    timeoutMs: options.timeout === undefined ? DEFAULT_TIMEOUT_MS : parseDuration(options.timeout, 'timeout'),
    handle: (answer) => {
      checkIsFunction(answer, 'What query.handle takes');
      const execution = requireDurable('query.handle');
      execution.host.queries.add(execution, name, answer as (...args: unknown[]) => unknown);
    },
  };
}
