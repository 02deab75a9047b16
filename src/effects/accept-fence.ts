import type { FenceOptions } from '../api/lease.js';
import { checkText } from '../engine/check-text.js';
import { checkKnownOptions } from '../engine/known-options.js';
import { InvalidArgumentError } from '../errors/admin-errors.js';
import { FenceRefusedError } from '../errors/lease-errors.js';
import { runnerOf } from '../fleet/callers-transaction.js';

const LONGEST_RESOURCE_BYTES = 512;
const FENCE_OPTIONS: ReadonlySet<string> = new Set(['transaction', 'resource', 'token']);
/** SQLSTATE of accept_fence. */
const HIGHER_TOKEN = 'HF010';

/** @throws FenceRefusedError, InvalidArgumentError */
export async function acceptFence(schema: string, options: FenceOptions): Promise<void> {
  checkKnownOptions(options, FENCE_OPTIONS, 'acceptFence');
  const { transaction, resource, token } = options;
  checkText(resource, LONGEST_RESOURCE_BYTES, 'resource');
  if (!Number.isSafeInteger(token) || token < 0) {
    throw new InvalidArgumentError(
      'token must be a safe integer that is not negative: lease.token, or workflow().epoch.',
    );
  }
  const run = runnerOf(transaction);
  try {
    await run(
      `SELECT "${schema}".accept_fence($1::text::json ->> 'resource', ($1::text::json ->> 'token')::int8)`,
      JSON.stringify({ resource, token }),
    );
  } catch (error) {
    if (!isRefusal(error)) throw error;
    throw new FenceRefusedError(
      `"${resource}" has accepted token ${error.detail ?? ''}, which is higher than ${String(token)}: another holder has ` +
        'taken over. Roll back, and write nothing more.',
      { accepted: Number(error.detail) },
      { cause: error },
    );
  }
}

/** The errors of `pg` and `postgres` have the SQLSTATE under `code`. */
function isRefusal(error: unknown): error is Error & { readonly detail?: string } {
  return error instanceof Error && 'code' in error && error.code === HIGHER_TOKEN;
}
