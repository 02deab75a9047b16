import type { EnqueueItem } from '../api/queue.js';
import { InvalidArgumentError } from '../errors/admin-errors.js';

/** @throws InvalidArgumentError unless it is a list: callers without types give other things. */
export function checkIsList(items: unknown): void {
  if (!Array.isArray(items)) {
    throw new InvalidArgumentError('enqueueMany takes a list of items: [{ args: […] }, …].');
  }
}

/** @throws InvalidArgumentError for a bare argument in the place of an item, which would be enqueued without arguments. */
export function checkItem(item: EnqueueItem<unknown[]>): EnqueueItem<unknown[]> {
  const { args } = (item as Partial<EnqueueItem<unknown[]>> | null) ?? {};
  if (!Array.isArray(args)) {
    throw new InvalidArgumentError('An item of enqueueMany has the list of arguments under "args": { args: […] }.');
  }
  return item;
}
