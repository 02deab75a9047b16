/**
 * Codes of errors that do not say whether the step has had its effect: it took too long, or says that it does not know; or it had a
 * result, which could not be stored.
 */
const DOUBTFUL: ReadonlySet<unknown> = new Set([
  'STEP_TIMEOUT',
  'OUTCOME_UNKNOWN',
  'VALUE_NOT_SERIALIZABLE',
  'PAYLOAD_TOO_LARGE',
  'WRITE_REFUSED',
]);

/**
 * Whether a step that failed with this error, in any of its attempts, may have happened all the same. By code, since the error may
 * have come back from the record.
 */
export function isDoubtful(error: unknown): boolean {
  if (typeof error !== 'object' || error === null) return false;
  const { code, errors } = error as { readonly code?: unknown; readonly errors?: unknown };
  if (DOUBTFUL.has(code)) return true;
  return code === 'STEP_RETRIES_EXHAUSTED' && Array.isArray(errors) && errors.some(isDoubtful);
}
