import type { Query, Signal, Update } from '../api/signals.js';
import { InvalidArgumentError } from '../errors/admin-errors.js';

type Kind = (Signal<unknown> | Query<unknown[], unknown> | Update<unknown, unknown>)['kind'];

const MAKERS: Readonly<Record<Kind, string>> = {
  signal: 'defineSignal',
  query: 'defineQuery',
  update: 'defineUpdate',
};

/**
 * Told by its mark, since it may have been made by another copy of the library. Something else that has a name would be waited
 * for in vain.
 * @throws InvalidArgumentError
 */
export function checkIsDefinition(value: unknown, kind: Kind): void {
  if (typeof value === 'object' && value !== null && 'kind' in value && value.kind === kind) return;
  throw new InvalidArgumentError(`handle.${kind} takes what ${MAKERS[kind]} returned; to give its name is not enough.`);
}
