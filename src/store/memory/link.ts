/**
 * The way between a process and the memory database: where faults come in. A call is one transaction; it takes effect at one
 * moment, or not at all, and its reply may come late or never.
 */
export interface Link {
  /** @throws LostReplyError when nobody can tell whether it took effect: the caller asks again. */
  call<Reply>(transaction: () => Reply): Promise<Reply>;
  /** A hint on its way to the process. It may be lost, late or doubled. */
  hint(deliver: () => void): void;
}

/** No reply came. The transaction may have taken effect or not. Never leaves the store. */
export class LostReplyError extends Error {
  override readonly name = 'LostReplyError';
}

/** Without faults: at once, after what the caller is doing. */
export const DIRECT_LINK: Link = {
  call: (transaction) => Promise.resolve().then(transaction),
  hint: (deliver) => {
    queueMicrotask(deliver);
  },
};
