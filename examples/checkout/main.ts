import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Holdfast } from '../../src/index.js';
import type { Order } from './checkout.js';
import { Cleanup } from './cleanup.js';
import { parseCommandLine, USAGE } from './command-line.js';
import { openDatabase } from './database.js';
import { Narrator } from './narrator.js';
import { readOrdersFile } from './orders-file.js';
import { report } from './report.js';
import { castRoles } from './roles.js';
import { cancelAndResume, freeze, recover, startAndKill, type Stage } from './stages.js';
import { StoryError } from './story-error.js';
import { counted, printable } from './text.js';

// What `npm start` shows: orders that lose their process, are taken over, are cancelled, and are all finished anyway.

const SAMPLE_ORDERS = fileURLToPath(new URL('orders.jsonl', import.meta.url));

async function main(): Promise<number> {
  const commandLine = parseCommandLine(process.argv.slice(2), SAMPLE_ORDERS);
  if (commandLine.kind === 'help') {
    process.stdout.write(`${USAGE}\n`);
    return 0;
  }
  if (commandLine.kind === 'wrong') {
    process.stderr.write(`${commandLine.problem}\n\n${USAGE}\n`);
    return 2;
  }
  const narrator = new Narrator();
  const cleanup = new Cleanup();
  try {
    return await tell(narrator, cleanup, commandLine.ordersPath);
  } catch (error) {
    // After Ctrl-C everything fails, since everything is being undone.
    if (cleanup.isRunning) return await new Promise<never>(() => undefined);
    narrator.bad(error instanceof StoryError ? error.message : `Unexpected: ${describe(error)}`);
    return 1;
  } finally {
    await cleanup.run();
  }
}

async function tell(narrator: Narrator, cleanup: Cleanup, ordersPath: string): Promise<number> {
  narrator.title('Holdfast: orders that survive their processes');
  const orders = readOrders(narrator, ordersPath);
  const database = await openDatabase(cleanup);
  narrator.say(`Records are kept in ${database.description}.`);
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-checkout-'));
  cleanup.add(() => {
    rmSync(folder, { recursive: true, force: true });
  });
  const settings = { databaseUrl: database.url, schema: database.schema, worldLog: join(folder, 'world.jsonl') };
  const onlooker = await Holdfast.launch({ workflows: [], database: database.url, schema: database.schema });
  cleanup.add(() => onlooker.close());

  const roles = castRoles(orders);
  const stage: Stage = { narrator, cleanup, settings, onlooker, roles };
  await startAndKill(stage);
  const worker = await recover(stage);
  if (roles.zombie === undefined) narrator.warn('There is no second order: no worker is frozen.');
  else await freeze(stage, roles.zombie);
  if (roles.cancelled === undefined) narrator.warn('There is no third order: none is cancelled.');
  else await cancelAndResume(stage, worker, roles.cancelled);
  await worker.stop();

  const problems = await report(narrator, onlooker, roles, settings.worldLog);
  for (const problem of problems) narrator.bad(problem);
  return problems.length === 0 ? 0 : 1;
}

/** @throws StoryError when there is nothing to place. */
function readOrders(narrator: Narrator, path: string): readonly [Order, ...Order[]] {
  const { orders, skipped, leftOut } = readOrdersFile(path);
  narrator.stage('Orders');
  narrator.say(`${counted(orders.length, 'order')} read from ${printable(path, 120)}.`);
  narrator.sayEach(skipped.map(({ lineNumber, problem }) => `Line ${String(lineNumber)} skipped: ${problem}`));
  if (leftOut > 0) narrator.warn(`${counted(leftOut, 'order')} left out: more prove nothing more.`);
  const [first, ...others] = orders;
  if (first === undefined) throw new StoryError('There is no order to place.');
  return [first, ...others];
}

function describe(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

process.exitCode = await main();
