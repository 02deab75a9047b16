import pg from 'pg';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import {
  defineDataSource,
  Holdfast,
  HoldfastClient,
  type HoldfastOptions,
  type PayloadCodec,
} from '../../src/index.js';
import { defaultSchema } from '../support/conditions.js';
import { createBed, gate, silentLogger, type Bed } from '../support/launch.js';
import { startPgProxyFor, type PgProxy } from '../support/pg-proxy.js';

// Whatever hangs or is away, a launch is over when its time is, and when nobody wants it any more.

let bed: Bed;
let proxy: PgProxy;
let through: string;
beforeAll(async () => {
  bed = await createBed();
  await bed.launch({ workflows: [] });
  proxy = await startPgProxyFor(bed.database.url);
  through = proxy.connectionString(bed.database.url);
});
afterEach(() => proxy.admit('open'));
afterAll(async () => {
  await proxy.close();
  await bed.close();
});

const launch = (options: Partial<HoldfastOptions>): Promise<Holdfast> =>
  Holdfast.launch({
    workflows: [],
    database: through,
    schema: defaultSchema(),
    logger: silentLogger,
    notifications: false,
    ...options,
  });

/** More than the time that connections get to be closed in, and less than any time limit of a connection or statement. */
const SOON_MS = 9_500;

/** Fails when it takes so long that something else than the launch's own time has ended it. */
async function ends(launching: Promise<unknown>): Promise<unknown> {
  const begun = performance.now();
  const end = await launching.then(
    () => undefined,
    (error: unknown) => error,
  );
  expect(performance.now() - begun).toBeLessThan(SOON_MS);
  return end;
}

/** When a database stops to say anything. */
const SILENCES: readonly ((proxy: PgProxy) => unknown)[] = [
  (silent) => silent.admit('silent'),
  // When its settings are read, and its schema.
  (silent) => silent.arm({ do: 'black-hole' }, /server_version_num/),
  (silent) => silent.arm({ do: 'black-hole' }, /FROM "\w+"\.migration/),
];

/** Does something with each kind of silent database, with all of them at once. */
async function withSilent(work: (database: string) => Promise<void>): Promise<void> {
  await Promise.all(
    SILENCES.map(async (begin) => {
      const silent = await startPgProxyFor(bed.database.url);
      await begin(silent);
      await work(silent.connectionString(bed.database.url));
      await silent.close();
    }),
  );
}

test('C62 a database that says nothing is waited for as long as launchTimeout says, by launch and by a client', async () => {
  await withSilent(async (database) => {
    expect(await ends(launch({ database, launchTimeout: 300 }))).toMatchObject({ code: 'LAUNCH_TIMEOUT' });
  });
  await proxy.admit('silent');
  expect(await ends(HoldfastClient.connect({ database: through, launchTimeout: 300 }))).toMatchObject({
    code: 'LAUNCH_TIMEOUT',
  });
});

test('C62 a launch that waits for a database which says nothing can be aborted', async () => {
  await withSilent(async (database) => {
    const signal = AbortSignal.timeout(300);
    expect(await ends(launch({ database, signal }))).toBe(signal.reason);
  });
});

test('C62 a data source that says nothing, or whose library does, is waited for as long as launchTimeout says', async () => {
  await proxy.admit('silent');
  const asked = gate();
  const hangs = (): Promise<never> => {
    asked.open();
    return gate<never>().opened;
  };
  const pool = new pg.Pool({ connectionString: through });
  const silent = defineDataSource('silent', pool);
  const mute = defineDataSource('mute', { transaction: hangs, query: () => Promise.resolve([]) });
  const { url } = bed.database;
  const aborted = new AbortController();
  const [end, ...timedOut] = await Promise.all([
    ends(launch({ database: url, dataSources: [mute], signal: aborted.signal })),
    ends(launch({ database: url, dataSources: [mute], launchTimeout: 2_000 })),
    ends(launch({ database: url, dataSources: [silent], launchTimeout: 2_000 })),
    asked.opened.then(() => {
      aborted.abort(new Error('changed my mind'));
    }),
  ]);
  expect(end).toBe(aborted.signal.reason);
  expect(timedOut.slice(0, 2)).toMatchObject([{ code: 'LAUNCH_TIMEOUT' }, { code: 'LAUNCH_TIMEOUT' }]);
});

test('C62 launch waits for a data source that cannot be reached yet, and for the database that goes away meanwhile', async () => {
  const pool = new pg.Pool({ connectionString: through });
  const app = defineDataSource('app', pool);
  await proxy.admit('closed-at-once');
  const { turnedAway } = proxy.counters;
  const launching = launch({ database: bed.database.url, dataSources: [app] });
  launching.catch(() => undefined);
  await proxy.waitFor((counters) => counters.turnedAway >= turnedAway + 3);
  await proxy.admit('open');
  await (await launching).close();

  const gone = proxy.arm({ do: 'cut-before' }, /pg_advisory_xact_lock/);
  const beside = new pg.Pool({ connectionString: bed.database.url });
  await (await launch({ dataSources: [defineDataSource('beside', beside)] })).close();
  expect(gone.hits).toBe(1);
  await Promise.all([pool.end(), beside.end()]);
});

test('C62 a launch whose codec does not answer can be aborted', async () => {
  const never: PayloadCodec = { name: 'never', encode: () => gate<never>().opened, decode: (text) => text };
  const signal = AbortSignal.timeout(300);
  expect(await ends(launch({ codecs: [never], signal }))).toBe(signal.reason);
});

test('a launch that a newer process of the same executor ID overtakes fails, and leaves nothing running', async () => {
  const complaints: string[] = [];
  const logger = { ...silentLogger, warn: (message: string) => complaints.push(message) };
  const isOvertaken = gate();
  const first = proxy.arm({ do: 'hold', until: isOvertaken.opened }, /heartbeat\(/);
  const older = launch({ executorId: 'same', pollInterval: 10, logger });
  older.catch(() => undefined);
  await first.happened;
  const newer = await bed.launch({ executorId: 'same', workflows: [] });
  isOvertaken.open();
  await expect(older).rejects.toMatchObject({ code: 'CLOSED' });
  expect(newer.health()).toMatchObject({ state: 'running', incarnation: 2 });
  await proxy.waitFor(({ open }) => open === 0);
  expect(complaints).not.toContain('A claim failed.');
});
