import { setTimeout as pause } from 'node:timers/promises';
import type { Pool } from 'pg';
import { type HoldfastClient, HoldfastError, WorkflowCancelledError } from '../../../src/index.js';
import type { Narrator } from '../../checkout/narrator.js';
import { cancelOrder } from '../customers.js';
import type { ToldOutcome } from '../judge.js';
import type { Order, Receipt } from '../order.js';
import { readLedger } from '../outside/ledger.js';
import type { Role } from './cast.js';
import type { Hold, OutsideProcess } from './outside-process.js';
import type { WorkerProcess } from './worker-process.js';

/** What the scenes share. */
export interface Stage {
  readonly client: HoldfastClient;
  readonly pool: Pool;
  readonly outside: OutsideProcess;
  readonly narrator: Narrator;
  launch(): Promise<WorkerProcess>;
}

/** What a customer was told, with the code of the error if there was one. */
export interface Told {
  readonly outcome: ToldOutcome;
  readonly code: string | undefined;
}

/** A charge is on its way when its order is cancelled: the provider has not seen it, and will. */
export async function cancelOnTheWay({ client, pool, narrator }: Stage, order: Order, onTheWay: Hold): Promise<void> {
  narrator.stage(`${order.id} is cancelled while its charge is on its way`);
  await onTheWay.first;
  await cancelOrder(client, pool, order.id);
  const { code } = await hear(client, order);
  narrator.say(`The customer was told ${String(code)}, and the provider has closed the order.`);
  onTheWay.end();
  narrator.say('Now the charge arrives.');
}

/** The card is charged, and the worker does not live to hear of it. */
export async function killInCharge(stage: Stage, order: Order, charged: Hold, worker: WorkerProcess): Promise<void> {
  const { client, narrator } = stage;
  narrator.stage(`Worker A is killed between the charge of ${order.id} and the provider's reply`);
  await charged.first;
  await worker.kill();
  charged.end();
  await stage.launch();
  narrator.say('Worker B takes over, as soon as the lease of worker A has expired.');
  const { outcome } = await hear(client, order);
  narrator.say(`It did not charge again: it asked. The order is ${outcome.kind}.`);
}

/** A customer who has paid changes his mind. */
export async function cancelInPacking({ client, pool, narrator }: Stage, order: Order): Promise<void> {
  narrator.stage(`${order.id} is cancelled while it is packed`);
  await isPacked(client, order.id);
  await cancelOrder(client, pool, order.id);
  const { code } = await hear(client, order);
  narrator.say(`The customer was told ${String(code)}, and has the money back.`);
}

/** What all customers were told, once the mail service has heard of the confirmed orders. */
export async function hearAll(
  { client }: Stage,
  cast: readonly Role[],
  ledger: string,
): Promise<ReadonlyMap<string, Told>> {
  const told = new Map<string, Told>();
  for (const { order } of cast) told.set(order.id, await hear(client, order));
  const confirmed = [...told].filter(([, { outcome }]) => outcome.kind === 'confirmed').map(([orderId]) => orderId);
  await until(() => {
    const entries = readLedger(ledger);
    return confirmed.every((id) => entries.some(({ what, orderId }) => what === 'notified' && orderId === id));
  });
  return told;
}

async function hear(client: HoldfastClient, { id }: Order): Promise<Told> {
  try {
    const { chargeId } = await client.handle<Receipt>(id).result();
    return { outcome: { kind: 'confirmed', chargeId }, code: undefined };
  } catch (error) {
    const kind = error instanceof WorkflowCancelledError ? 'cancelled' : 'failed';
    return { outcome: { kind }, code: error instanceof HoldfastError ? error.code : String(error) };
  }
}

async function isPacked(client: HoldfastClient, orderId: string): Promise<void> {
  await until(async () => (await client.admin.steps(orderId)).items.some(({ name }) => name === 'charge'));
}

async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await pause(50);
}
