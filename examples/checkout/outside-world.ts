import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { step, workflow } from '../../src/index.js';
import { holdHere } from './hold.js';

// The warehouse, the payment provider and the carrier: what Holdfast cannot see into. They are fakes whose answers follow
// from their arguments, and they write down every call in a file. That file, and not the database, says afterwards how often
// the body of each step was run.

/** Environment variable with the path of the log; set for workers. */
export const WORLD_LOG_VARIABLE = 'CHECKOUT_WORLD_LOG';

/** One run of the body of a step, in whichever process. */
export interface BodyRun {
  readonly orderId: string;
  readonly step: string;
  readonly epoch: number;
  readonly idempotencyKey: string;
  readonly processId: number;
}

export const warehouse = {
  async reserve(_item: string, _quantity: number, call: { readonly idempotencyKey: string }): Promise<string> {
    await beSeen();
    return `shelf-${call.idempotencyKey.slice(0, 8)}`;
  },
};

export const payments = {
  /** Like a real provider: the same key gets the same charge, however often it is asked. */
  async charge(_cents: number, call: { readonly idempotencyKey: string }): Promise<string> {
    await beSeen();
    return `charge-${call.idempotencyKey.slice(0, 8)}`;
  },
};

export const carrier = {
  async ship(reservation: string, call: { readonly fencingToken: number }): Promise<string> {
    await beSeen();
    return `parcel-from-${reservation}-by-epoch-${String(call.fencingToken)}`;
  },
};

/** Writes the call down, then waits for as long as the story wants this call to hang. */
async function beSeen(): Promise<void> {
  const { workflowId, name, idempotencyKey } = step();
  const run: BodyRun = {
    orderId: workflowId,
    step: name,
    epoch: workflow().epoch,
    idempotencyKey,
    processId: process.pid,
  };
  const path = process.env[WORLD_LOG_VARIABLE];
  // One write of one short line, to a file opened for appending: processes do not mix their lines, and a kill loses none.
  if (path !== undefined) appendFileSync(path, `${JSON.stringify(run)}\n`);
  await holdHere(workflowId, name);
}

/** Everything that was called so far. */
export function readBodyRuns(path: string): readonly BodyRun[] {
  if (!existsSync(path)) return [];
  const lines = readFileSync(path, 'utf8').split('\n');
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as BodyRun);
}
