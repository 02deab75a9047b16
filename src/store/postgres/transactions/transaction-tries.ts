import { TransactionConflictError } from '../../../errors/transaction-errors.js';
import type { TransactionAnswer, TransactionJob } from '../../transaction-store.js';
import { backoffMs, pause } from '../backoff.js';

/** How often a body is run again, within one attempt, after serialisation failures and deadlocks. */
export const MOST_CONFLICTS = 10;
/** How often a body is run again, within one attempt, after its connection was lost while it ran. */
const MOST_LOST_CONNECTIONS = 5;
/** Delays after serialisation failures, in milliseconds: doubling between these, half of it at random. */
const FIRST_CONFLICT_DELAY_MS = 5;
const LONGEST_CONFLICT_DELAY_MS = 1_000;

/** What came of one try. */
export type TryEnd<Answer = TransactionAnswer> =
  | { readonly kind: 'settled'; readonly answer: Answer }
  /**
   * Nothing took effect, and another try may: it lost to another transaction, or to a write of this workflow; its connection
   * broke while the body ran; or none was to be had.
   */
  | {
      readonly kind: 'again';
      readonly because: 'conflict' | 'connection-lost' | 'unavailable';
      readonly error: unknown;
    };

/**
 * Tries until there is an answer. These tries are apart from the user's attempts: a conflict is nobody's fault.
 *
 * After the first conflict a try takes the execution's turn before it begins: a checkpoint of a parallel step could otherwise
 * fail a transaction of one snapshot again and again.
 */
export async function tryUntilSettled<Answer = TransactionAnswer>(
  job: Pick<TransactionJob, 'name' | 'signal'>,
  closing: AbortSignal,
  oneTry: (options: { readonly turnFirst: boolean }) => Promise<TryEnd<Answer>>,
): Promise<Answer | { readonly kind: 'failed'; readonly error: unknown }> {
  let conflicts = 0;
  let lost = 0;
  for (let attempt = 1; ; attempt++) {
    const end = await oneTry({ turnFirst: conflicts > 0 });
    if (end.kind === 'settled') return end.answer;
    if (job.signal.aborted) return { kind: 'failed', error: end.error };
    const ended = AbortSignal.any([job.signal, closing]);
    switch (end.because) {
      case 'conflict':
        conflicts += 1;
        if (conflicts > MOST_CONFLICTS) return { kind: 'failed', error: conflict(job, end.error) };
        await pause(conflictDelayMs(conflicts), ended);
        break;
      case 'connection-lost':
        lost += 1;
        if (lost > MOST_LOST_CONNECTIONS) return { kind: 'failed', error: end.error };
        await pause(backoffMs(lost), ended);
        break;
      case 'unavailable':
        // Nothing began: as for any other write of an execution, the database is waited for.
        await pause(backoffMs(attempt), ended);
        break;
    }
  }
}

function conflict({ name }: Pick<TransactionJob, 'name'>, cause: unknown): TransactionConflictError {
  return new TransactionConflictError(
    `Transaction "${name}" met serialisation failures or deadlocks at each of ${String(MOST_CONFLICTS + 1)} tries. Nothing took effect.`,
    { cause },
  );
}

function conflictDelayMs(conflicts: number): number {
  const full = Math.min(LONGEST_CONFLICT_DELAY_MS, FIRST_CONFLICT_DELAY_MS * 2 ** (conflicts - 1));
  return full / 2 + Math.random() * (full / 2);
}
