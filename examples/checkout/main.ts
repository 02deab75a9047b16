import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Holdfast, HoldfastError } from '../../src/index.js';
import type { Order } from './checkout.js';
import { Cleanup } from './cleanup.js';
import { parseCommandLine, USAGE } from './command-line.js';
import { openDatabase } from './database.js';
import { Narrator } from './narrator.js';
import { readOrdersFile } from './orders-file.js';
import { report } from './report.js';
import { castOrders } from './roles.js';
import { cancelAndResume } from './scene-cancel.js';
import { killAndRecover } from './scene-kill.js';
import { raiseZombie } from './scene-zombie.js';
import { Story } from './story.js';
import { StoryError } from './story-error.js';
import { counted, printable } from './text.js';

// A shop's checkout that goes through three kinds of trouble. The workflow itself, as you would write it: checkout.ts.

const SAMPLE_ORDERS = fileURLToPath(new URL('./orders.jsonl', import.meta.url));

async function tell(ordersPath: string, cleanup: Cleanup): Promise<boolean> {
  const narrator = new Narrator();
  narrator.title('Holdfast: a checkout that survives kills, freezes and second thoughts');
  const orders = readOrders(ordersPath, narrator);
  const story = await prepare(orders, narrator, cleanup);

  const workerB = await killAndRecover(story);
  const zombie = await raiseZombie(story);
  await cancelAndResume(story, workerB);
  await Promise.all([workerB.stop(), zombie?.stop()]);
  return report(story);
}

function readOrders(path: string, narrator: Narrator): readonly Order[] {
  narrator.stage('Orders are read');
  const { orders, skipped, leftOut } = readOrdersFile(path);
  const name = printable(path === SAMPLE_ORDERS ? relative(process.cwd(), path) : path, 120);
  narrator.say(`${name}: ${counted(orders.length, 'order')}, ${counted(skipped.length, 'line')} skipped.`);
  for (const { lineNumber, problem } of skipped.slice(0, 20)) narrator.warn(`Line ${String(lineNumber)}: ${problem}`);
  if (skipped.length > 20) narrator.warn(`… and ${String(skipped.length - 20)} more lines.`);
  if (leftOut > 0) narrator.warn(`${counted(leftOut, 'further order')} left out: that many are enough.`);
  if (orders.length === 0) throw new StoryError(`"${name}" has no usable order.`);
  return orders;
}

async function prepare(orders: readonly Order[], narrator: Narrator, cleanup: Cleanup): Promise<Story> {
  const directory = mkdtempSync(join(tmpdir(), 'holdfast-checkout-'));
  cleanup.add(() => {
    rmSync(directory, { recursive: true, force: true });
  });
  const database = await openDatabase(cleanup);
  narrator.say(`Records go to ${database.description}.`);
  const holdfast = await launchObserver(database, cleanup);
  return new Story({
    holdfast,
    narrator,
    cast: castOrders(orders),
    settings: {
      databaseUrl: database.url,
      schema: database.schema,
      worldLogPath: join(directory, 'outside-world.jsonl'),
    },
    cleanup,
  });
}

/** A Holdfast without workflows runs nothing; it can ask about everything. */
async function launchObserver(
  { url, schema }: { readonly url: string; readonly schema: string },
  cleanup: Cleanup,
): Promise<Holdfast> {
  const ending = new AbortController();
  const launching = Holdfast.launch({
    workflows: [],
    database: url,
    schema,
    pollInterval: '200ms',
    launchTimeout: '10s',
    signal: ending.signal,
  });
  cleanup.add(async () => {
    ending.abort();
    const launched = await launching.catch(() => undefined);
    await launched?.close();
  });
  return launching;
}

function explain(error: unknown): string {
  if (error instanceof StoryError) return error.message;
  if (error instanceof HoldfastError) return `${error.message} (${error.code})`;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

async function main(): Promise<number> {
  const command = parseCommandLine(process.argv.slice(2), SAMPLE_ORDERS);
  if (command.kind === 'help') {
    process.stdout.write(`${USAGE}\n`);
    return 0;
  }
  if (command.kind === 'wrong') {
    process.stderr.write(`${command.problem}\n\n${USAGE}\n`);
    return 2;
  }
  const cleanup = new Cleanup();
  try {
    return (await tell(command.ordersPath, cleanup)) ? 0 : 1;
  } catch (error) {
    // A signal ends the story anywhere.
    if (!(await cleanup.isCauseOfFailures())) process.stderr.write(`Error: ${explain(error)}\n`);
    return 1;
  } finally {
    await cleanup.run();
  }
}

process.exitCode = await main();
