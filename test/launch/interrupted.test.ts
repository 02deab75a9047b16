import { afterAll, beforeAll, expect, test } from 'vitest';
import { defineWorkflow, Holdfast, type HoldfastOptions } from '../../src/index.js';
import { createBed, silentLogger, type Bed } from '../support/launch.js';
import { startPgProxyFor, type PgProxy } from '../support/pg-proxy.js';

// A launch has reached the database, and then it goes away: the launch waits as it does for one that is not there yet.

let bed: Bed;
let proxy: PgProxy;
beforeAll(async () => {
  bed = await createBed();
  await bed.launch({ workflows: [] });
  proxy = await startPgProxyFor(bed.database.url);
});
afterAll(async () => {
  await proxy.close();
  await bed.close();
});

const answer = defineWorkflow('answer', async () => 42);

/** A launch whose database is gone from its first statement with that text on. */
async function launchUntil(
  text: string,
  options: Partial<HoldfastOptions> = {},
): Promise<{ launched: Promise<Holdfast> }> {
  const fault = proxy.arm({ do: 'cut-before' }, ({ sql }) => sql.includes(text));
  const launching = Holdfast.launch({
    workflows: [answer],
    queues: [{ name: 'declared' }],
    database: proxy.connectionString(bed.database.url),
    logger: silentLogger,
    notifications: false,
    ...options,
  });
  launching.catch(() => undefined);
  await fault.happened;
  await proxy.admit('closed-at-once');
  proxy.cutAll();
  fault.disarm();
  return { launched: launching };
}

const STATEMENTS = ['define_queues(', 'register_executor(', 'heartbeat('];

test.each(STATEMENTS)('C62 launch waits for a database that goes away at %s', async (statement) => {
  const { turnedAway } = proxy.counters;
  const { launched } = await launchUntil(statement);
  // More tries than a launch may give up after.
  await proxy.waitFor((counters) => counters.turnedAway >= turnedAway + 6, { timeoutMs: 30_000 });
  await proxy.admit('open');
  const holdfast = await launched;
  await expect(holdfast.start(answer, {}).then((handle) => handle.result())).resolves.toBe(42);
  await holdfast.close();
});

test.each(STATEMENTS)('C62 launch gives up in its time when the database is gone from %s on', async (statement) => {
  const { launched } = await launchUntil(statement, { launchTimeout: 3_000 });
  await expect(launched).rejects.toMatchObject({ code: 'LAUNCH_TIMEOUT' });
  await proxy.admit('open');
});

test.each(STATEMENTS)('C62 launch can be aborted when the database is gone from %s on', async (statement) => {
  const controller = new AbortController();
  const { launched } = await launchUntil(statement, { signal: controller.signal });
  controller.abort(new Error('changed my mind'));
  await expect(launched).rejects.toThrow('changed my mind');
  await proxy.admit('open');
});
