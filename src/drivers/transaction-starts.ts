import type { TransactionOptions } from './driver.js';
import type { TransactionStart } from './session.js';

/** How many are kept: there are a few, unless somebody makes up a new idle timeout for each transaction. */
const MOST_KEPT = 32;

/** How transactions begin, by their options: the same object for the same options, so that what is made of it can be kept. */
export class TransactionStarts {
  readonly #kept = new Map<string, TransactionStart>();

  of(options: TransactionOptions): TransactionStart {
    const { isolation = 'read committed', access = 'read write', idleTimeoutMs = '', marker = '' } = options;
    const key = `${isolation}/${access}/${String(idleTimeoutMs)}/${marker}`;
    let start = this.#kept.get(key);
    if (start === undefined) {
      start = startOf(options);
      if (this.#kept.size < MOST_KEPT) this.#kept.set(key, start);
    }
    return start;
  }
}

function startOf({
  isolation = 'read committed',
  access = 'read write',
  idleTimeoutMs,
  marker,
}: TransactionOptions): TransactionStart {
  const settings: string[] = [];
  if (idleTimeoutMs !== undefined) {
    // Zero would switch the limit off.
    settings.push(`SET LOCAL idle_in_transaction_session_timeout = ${Math.max(1, Math.ceil(idleTimeoutMs))}`);
  }
  // Only a query settles the access mode: until then the body could make it READ WRITE.
  if (marker !== undefined && access === 'read only') settings.push('SELECT');
  if (marker !== undefined) settings.push(`SET LOCAL holdfast.transaction = '${marker.replace(/[^\w-]/g, '')}'`);
  return { modes: `ISOLATION LEVEL ${isolation.toUpperCase()} ${access.toUpperCase()}`, settings };
}
