/** Of transactions, which are rolled back otherwise: the body says that it does not know, or has ended the transaction itself. */
const NOT_ROLLED_BACK: ReadonlySet<unknown> = new Set(['OUTCOME_UNKNOWN', 'TRANSACTION_ENDED']);

/**
 * Codes of errors that do not say whether the step has had its effect: it took too long, or says that it does not know; or it had a
 * result, which could not be stored.
 */
const DOUBTFUL: ReadonlySet<unknown> = new Set([
  ...NOT_ROLLED_BACK,
  'STEP_TIMEOUT',
  'VALUE_NOT_SERIALIZABLE',
  'PAYLOAD_TOO_LARGE',
  'WRITE_REFUSED',
]);

/**
 * Whether a step that failed with this error, in any of its attempts, may have happened all the same. By code, since the error may
 * have come back from the record.
 */
export function isDoubtful(error: unknown): boolean {
  return hasCode(error, DOUBTFUL);
}

/** The same of a transaction that commits with its record. In another database it may have committed, and its record been refused. */
export function isDoubtfulTransaction(error: unknown): boolean {
  return hasCode(error, NOT_ROLLED_BACK);
}

function hasCode(error: unknown, codes: ReadonlySet<unknown>): boolean {
  if (typeof error !== 'object' || error === null) return false;
  const { code, errors } = error as { readonly code?: unknown; readonly errors?: unknown };
  if (codes.has(code)) return true;
  return (
    code === 'STEP_RETRIES_EXHAUSTED' && Array.isArray(errors) && errors.some((attempt) => hasCode(attempt, codes))
  );
}
