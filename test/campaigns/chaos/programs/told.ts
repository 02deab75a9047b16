import { randomUUID } from 'node:crypto';
import { HoldfastError } from '../../../../src/index.js';
import type { CallKind, ErrorPlace } from '../ledger/entry.js';
import type { LedgerClient } from '../ledger/ledger-client.js';

/** Codes of errors after which nobody knows whether the call took effect. */
const UNKNOWN_CODES: ReadonlySet<string> = new Set([
  'STORE_CLOSED',
  'CONNECTION_LOST',
  'CONNECTION_UNAVAILABLE',
  'CLOSED',
]);

/** What an error is known by. Those that are not Holdfast's, and not the campaign's own, are what the campaign looks for. */
export function codeOf(error: unknown): string {
  if (error instanceof HoldfastError) return error.code;
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}

/** How a call ended, as far as its caller knows. */
export type Told<Result> = { readonly how: 'ok'; readonly result: Result } | { readonly how: 'fail' | 'unknown' };

/** Makes a call, and tells the ledger before and after. */
export async function toldCall<Result>(
  ledger: LedgerClient,
  call: { readonly kind: CallKind; readonly workflowId: string; readonly value?: string },
  make: () => Promise<Result>,
): Promise<Told<Result>> {
  const op = randomUUID();
  await ledger.tell({ what: 'invoke', op, ...call });
  try {
    const result = await make();
    ledger.note({ what: 'ok', op });
    return { how: 'ok', result };
  } catch (error) {
    const code = codeOf(error);
    const how = UNKNOWN_CODES.has(code) ? 'unknown' : 'fail';
    ledger.note({ what: how, op, code });
    noteError(ledger, 'call', error);
    return { how };
  }
}

/** Waits for an outcome, and tells the ledger what it was. */
export async function toldOutcome(
  ledger: LedgerClient,
  workflowId: string,
  wait: () => Promise<unknown>,
): Promise<void> {
  try {
    const value = await wait();
    await ledger.tell({ what: 'outcome', workflowId, value: JSON.stringify(value) });
  } catch (error) {
    await ledger.tell({ what: 'outcome', workflowId, code: codeOf(error) });
  }
}

export function noteError(ledger: LedgerClient, where: ErrorPlace, error: unknown): void {
  ledger.note({ what: 'error', where, code: codeOf(error), message: String(error) });
}

/** Nothing of this process may go wrong unseen. */
export function watchProcess(ledger: LedgerClient): void {
  process.on('unhandledRejection', (error) => {
    noteError(ledger, 'unhandled', error);
  });
  process.on('uncaughtException', (error) => {
    noteError(ledger, 'unhandled', error);
  });
  process.on('warning', (warning) => {
    noteError(ledger, 'warning', warning);
  });
}
