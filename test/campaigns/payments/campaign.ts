import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import type { ToldOrder } from '../../../examples/payments/judge.js';
import { type LedgerEntry, readLedger } from '../../../examples/payments/outside/ledger.js';
import { createShop, stockOf } from '../../../examples/payments/shop.js';
import { HoldfastClient } from '../../../src/index.js';
import { bundle } from '../../support/bundle.js';
import { SeededRandom } from '../support/seeded-random.js';
import { Crew, type Strike } from './crew.js';
import type { Tally } from './messages.js';
import type { Mutant } from './mutants.js';
import { Outside } from './outside.js';
import { planOrders, type PaymentsOptions, STOCK } from './plan.js';
import { operate, Shopper } from './shopper.js';
import { Strikes } from './strikes.js';
import { silentLogger } from '../support/silent-logger.js';

/** Everything that the judges get to see. */
export interface Evidence {
  readonly options: PaymentsOptions;
  readonly ledger: readonly LedgerEntry[];
  readonly orders: readonly ToldOrder[];
  /** What is on the shelves in the end, by item. */
  readonly stock: ReadonlyMap<string, number>;
  readonly strikes: readonly Strike[];
  readonly tally: Tally;
  /** Cancellations that the shop has accepted. */
  readonly cancellations: number;
  /** How often what waited for a person was tried again. */
  readonly resumed: number;
}

/** The two programs of the campaign, compiled. */
export interface Programs {
  readonly worker: string;
  readonly outside: string;
  remove(): Promise<void>;
}

export async function compilePrograms(): Promise<Programs> {
  const worker = await bundle(new URL('./worker-process.ts', import.meta.url));
  const outside = await bundle(new URL('./outside-process.ts', import.meta.url));
  return {
    worker: worker.program,
    outside: outside.program,
    remove: async () => {
      await worker.remove();
      await outside.remove();
    },
  };
}

export interface PaymentsRun {
  /** Connection string of an empty database. */
  readonly database: string;
  readonly programs: Programs;
  readonly options: PaymentsOptions;
  readonly mutant?: Mutant | undefined;
  readonly progress?: (text: string) => void;
}

/** Runs the whole campaign. */
export async function runPaymentsCampaign(run: PaymentsRun): Promise<Evidence> {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-payments-'));
  const pool = new pg.Pool({ connectionString: run.database, max: 5 });
  const undo: (() => Promise<unknown>)[] = [() => rm(folder, { recursive: true, force: true }), () => pool.end()];
  try {
    await createShop(pool, STOCK);
    const client = await HoldfastClient.connect({ database: run.database, migrate: true, logger: silentLogger });
    undo.push(() => client.close());
    return await play(run, join(folder, 'ledger.jsonl'), client, pool, undo);
  } finally {
    for (const step of undo.reverse()) await step();
  }
}

async function play(
  { database, programs, options, mutant, progress = () => undefined }: PaymentsRun,
  ledger: string,
  client: HoldfastClient,
  pool: pg.Pool,
  undo: (() => Promise<unknown>)[],
): Promise<Evidence> {
  const random = new SeededRandom(options.seed);
  const plan = planOrders(options);
  const { seed, troubleShare, leaseMs } = options;
  const outside = await Outside.launch(programs.outside, { ledger, seed, troubleShare });
  undo.push(() => outside.end());
  const crew = new Crew(programs.worker, { database, leaseMs, provider: outside.url, mutant }, random);
  undo.push(() => crew.killAll());
  const strikes = new Strikes(options, crew, outside, random);
  await Promise.all(Array.from({ length: options.workers }, () => crew.launch()));
  progress(`${String(options.workers)} workers run`);

  const shopper = new Shopper(client, pool);
  await Promise.all([shopper.shop(plan), strikes.run()]);
  progress('all workers are well again');
  const allTold = new AbortController();
  const operator = operate(client, allTold.signal);
  const orders = await shopper.hear(plan, options);
  await delivered(ledger, orders);
  allTold.abort();
  return {
    options,
    orders,
    resumed: await operator,
    ledger: readLedger(ledger),
    stock: await stockOf(pool),
    strikes: crew.strikes,
    tally: await outside.report(),
    cancellations: shopper.cancellations,
  };
}

/** How long an event may be under way after its order has ended. */
const DELIVERY_MS = 30_000;
/** How long nothing is to happen any more: what should not come at all would come by then. */
const QUIET_MS = 3_500;

/** Waits for the events of confirmed orders, and for a moment of quiet. */
async function delivered(ledger: string, orders: readonly ToldOrder[]): Promise<void> {
  const deadline = performance.now() + DELIVERY_MS;
  for (;;) {
    const notified = new Set(readLedger(ledger).flatMap((entry) => (entry.what === 'notified' ? [entry.orderId] : [])));
    const isComplete = orders.every(({ orderId, told }) => told.kind !== 'confirmed' || notified.has(orderId));
    if (isComplete || performance.now() > deadline) break;
    await pause(100);
  }
  await pause(QUIET_MS);
}
