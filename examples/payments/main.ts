import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { HoldfastClient, startEmbeddedPostgres } from '../../src/index.js';
import { Cleanup } from '../checkout/cleanup.js';
import { Narrator } from '../checkout/narrator.js';
import { CANCELLED, CAST, KILLED, OVERTAKEN, STOCK, TROUBLES } from './demo/cast.js';
import { OutsideProcess } from './demo/outside-process.js';
import { report } from './demo/report.js';
import { cancelInPacking, cancelOnTheWay, hearAll, killInCharge } from './demo/scenes.js';
import { WorkerProcess } from './demo/worker-process.js';
import { placeOrder } from './customers.js';
import { ORDER_ERRORS } from './order.js';
import { readLedger } from './outside/ledger.js';
import { createShop, stockOf } from './shop.js';

// A shop whose payment provider fails in every way that payment providers do. The workflow itself: orders.ts. Why it is as it is:
// README.md.

async function main(cleanup: Cleanup): Promise<boolean> {
  const narrator = new Narrator();
  narrator.title('Holdfast: nobody is charged twice, and nobody for nothing');

  const folder = mkdtempSync(join(tmpdir(), 'holdfast-payments-'));
  cleanup.add(() => {
    rmSync(folder, { recursive: true, force: true });
  });
  const server = await startEmbeddedPostgres();
  cleanup.add(() => server.stop());
  const ledger = join(folder, 'ledger.jsonl');
  const outside = await OutsideProcess.launch({ ledger, troubles: TROUBLES });
  cleanup.add(() => {
    outside.end();
  });
  const pool = new pg.Pool({ connectionString: server.connectionString, max: 3 });
  // See shopDatabase.
  pool.on('error', () => undefined);
  cleanup.add(() => pool.end());
  await createShop(pool, STOCK);
  const client = await HoldfastClient.connect({
    database: server.connectionString,
    migrate: true,
    errors: ORDER_ERRORS,
    pollInterval: '200ms',
  });
  cleanup.add(() => client.close());
  const stage = {
    client,
    pool,
    outside,
    narrator,
    launch: () => launchWorker(server.connectionString, outside, cleanup),
  };

  narrator.stage(`${String(CAST.length)} orders are placed; worker A takes them`);
  const charged = outside.hold({ request: 'charge', moment: 'done', orderId: KILLED.order.id });
  const onTheWay = outside.hold({ request: 'charge', moment: 'arrived', orderId: OVERTAKEN.order.id });
  const workerA = await stage.launch();
  for (const { order, story } of CAST) {
    await placeOrder(client, pool, order);
    narrator.say(`${order.id}: ${story}`);
  }
  await cancelOnTheWay(stage, OVERTAKEN.order, onTheWay);
  await killInCharge(stage, KILLED.order, charged, workerA);
  await cancelInPacking(stage, CANCELLED.order);

  narrator.stage('What the customers were told, and what the provider wrote down');
  const told = await hearAll(stage, CAST, ledger);
  return report(narrator, CAST, told, readLedger(ledger), STOCK, await stockOf(pool));
}

async function launchWorker(databaseUrl: string, outside: OutsideProcess, cleanup: Cleanup): Promise<WorkerProcess> {
  const worker = await WorkerProcess.launch(databaseUrl, outside.url);
  cleanup.add(() => worker.kill());
  return worker;
}

const cleanup = new Cleanup();
try {
  process.exitCode = (await main(cleanup)) ? 0 : 1;
} catch (error) {
  // A signal ends the demonstration anywhere.
  if (!(await cleanup.isCauseOfFailures()))
    process.stderr.write(`Error: ${error instanceof Error ? (error.stack ?? '') : String(error)}\n`);
  process.exitCode = 1;
} finally {
  await cleanup.run();
}
