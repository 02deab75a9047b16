import { createServer, type AddressInfo } from 'node:net';
import pg from 'pg';
import postgres from 'postgres';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { defineWorkflow, Holdfast, runStep, type HoldfastOptions } from '../../src/index.js';
import { createBed, silentLogger, waitUntil, type Bed } from '../support/launch.js';

let bed: Bed;
beforeAll(async () => {
  bed = await createBed();
});
afterAll(() => bed.close());

const run = defineWorkflow('run', (n: number) => runStep('double', () => Promise.resolve(n * 2)));

function launch(options: Partial<HoldfastOptions>): Promise<Holdfast> {
  return Holdfast.launch({ workflows: [run], database: bed.database.url, logger: silentLogger, ...options });
}

async function connections(): Promise<number> {
  const { rows } = await bed.sql.query<{ n: number }>(
    `SELECT count(*)::int AS n FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`,
  );
  return rows[0]?.n ?? -1;
}

test('C62 launch waits for a database that cannot be reached, within its bound, and says so', async () => {
  const begun = performance.now();
  await expect(
    launch({ database: 'postgresql://postgres@127.0.0.1:1/none', launchTimeout: 300 }),
  ).rejects.toMatchObject({ code: 'LAUNCH_TIMEOUT', cause: { code: 'CONNECTION_UNAVAILABLE' } });
  expect(performance.now() - begun).toBeGreaterThanOrEqual(300);
});

test('C62 launch can be aborted while it waits', async () => {
  const controller = new AbortController();
  const launching = launch({ database: 'postgresql://postgres@127.0.0.1:1/none', signal: controller.signal });
  controller.abort(new Error('changed my mind'));
  await expect(launching).rejects.toThrow('changed my mind');
});

test('C62 launch goes on as soon as the database is there', async () => {
  const target = new URL(bed.database.url);
  const { connect } = await import('node:net');
  const reserve = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => reserve.once('listening', resolve));
  const { port } = reserve.address() as AddressInfo;
  await new Promise((resolve) => reserve.close(resolve));
  const url = new URL(target);
  url.port = String(port);
  const launching = launch({ database: url.href, notifications: false });
  launching.catch(() => undefined);
  const bridge = createServer((socket) => {
    const upstream = connect(Number(target.port || 5432), target.hostname);
    socket.pipe(upstream).pipe(socket);
    socket.on('error', () => upstream.destroy());
    upstream.on('error', () => socket.destroy());
  }).listen(port, '127.0.0.1');
  const holdfast = await launching;
  expect(holdfast.health().state).toBe('running');
  await holdfast.close();
  await new Promise((resolve) => bridge.close(resolve));
});

test.each<[string, Record<string, unknown>, string]>([
  ['an unknown option', { databse: 'x' }, 'INVALID_ARGUMENT'],
  ['a lease that is too short', { lease: 10 }, 'INVALID_ARGUMENT'],
  ['a duration that is none', { pollInterval: 'often' }, 'INVALID_ARGUMENT'],
  ['too few connections', { maxConnections: 1 }, 'INVALID_ARGUMENT'],
  ['a schema name with a quote', { schema: 'a"; DROP TABLE x; --' }, 'SCHEMA_NAME_INVALID'],
  ['a schema name of the system', { schema: 'pg_holdfast' }, 'SCHEMA_NAME_INVALID'],
  ['a database that is neither a text nor a pool', { database: {} }, 'DRIVER_CONFIGURATION'],
  ['a database that does not exist', { database: 'DOES_NOT_EXIST' }, 'DATABASE_ERROR'],
])('%s is refused, and nothing stays open', async (_, options, code) => {
  const target = new URL(bed.database.url);
  target.pathname = '/no_such_database';
  const fixed = options['database'] === 'DOES_NOT_EXIST' ? { database: target.href, launchTimeout: 200 } : options;
  const expected =
    code === 'DATABASE_ERROR' ? /LAUNCH_TIMEOUT|DATABASE_ERROR|CONNECTION_UNAVAILABLE/ : new RegExp(code);
  const error: unknown = await launch(fixed as Partial<HoldfastOptions>).catch((thrown: unknown) => thrown);
  expect((error as { code: string }).code).toMatch(expected);
  await waitUntil(async () => (await connections()) === 0, 'nothing is connected');
});

test('a wrong password or database name is said at once, not after the time that a database gets to come up', async () => {
  const target = new URL(bed.database.url);
  target.pathname = '/no_such_database';
  const begun = performance.now();
  await expect(launch({ database: target.href, launchTimeout: '1h' })).rejects.toMatchObject({ sqlState: '3D000' });
  expect(performance.now() - begun).toBeLessThan(30_000);
});

test('a codec that fails blocks the workflow with its reason, and never ends the process; resume goes on', async () => {
  let broken = false;
  const codec = {
    name: 'moody',
    encode: (text: string) => (broken ? Promise.reject(new Error('key service down')) : Promise.resolve(text)),
    decode: (text: string) => text,
  };
  const holdfast = await launch({ codecs: [codec], workflows: [moody] });
  for (const where of ['step', 'end', 'error']) {
    broken = false;
    atStep = () => (broken = where === 'step');
    atEnd = () => {
      broken = where !== 'step';
      if (where === 'error') throw new Error('failed');
    };
    const handle = await holdfast.start(moody, { workflowId: `moody-${where}` });
    await waitUntil(async () => (await handle.status()) === 'BLOCKED', 'it is blocked');
    expect((await holdfast.admin.get(handle.workflowId)).attention?.code).toBe('PAYLOAD_CODEC_FAILED');
    expect(holdfast.health().running).toBe(0);
    broken = false;
    atStep = atEnd = () => undefined;
    await holdfast.admin.resume(handle.workflowId);
    expect(await handle.result()).toBe(1);
  }
  await holdfast.close();
});

let atStep: () => unknown = () => undefined;
let atEnd: () => unknown = () => undefined;
const moody = defineWorkflow('moody', async () => {
  const value = await runStep('work', () => {
    atStep();
    return Promise.resolve(1);
  });
  atEnd();
  return value;
});

test.each<[string, () => unknown]>([
  ['a misspelt step option', () => runStep('x', () => Promise.resolve(), { retires: 3 } as object)],
  ['a misspelt retry option', () => runStep('x', () => Promise.resolve(), { retries: { maxAttemps: 3 } } as object)],
  ['a misspelt workflow option', () => defineWorkflow('x', () => Promise.resolve(), { maxAttemps: 3 } as object)],
  ['a schema that is none', () => defineWorkflow('x', () => Promise.resolve(), { input: 3 } as object)],
  ['a codec without its functions', () => launch({ codecs: [{}] as never })],
  [
    'two codecs of one name',
    () => launch({ codecs: [0, 1].map(() => ({ name: 'x', encode: String, decode: String })) }),
  ],
  ['a logger without its functions', () => launch({ logger: {} as never })],
  ['an error class that is none', () => launch({ errors: [Map] as never })],
])('%s is refused', async (_, act) => {
  const error: unknown = await Promise.resolve()
    .then(act)
    .catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ code: 'INVALID_ARGUMENT' });
});

test('everything that launch opened is closed again, and close is idempotent', async () => {
  const before = process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
  const holdfast = await launch({});
  expect(await (await holdfast.start(run, {}, 2)).result()).toBe(4);
  await Promise.all([holdfast.close(), holdfast.close()]);
  await waitUntil(async () => (await connections()) === 0, 'nothing is connected');
  await waitUntil(
    () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length <= before + 1,
    'no timer is left',
  );
  await expect(holdfast.start(run, {}, 2)).rejects.toMatchObject({ code: 'CLOSED' });
  await expect(holdfast.handle('x').result()).rejects.toMatchObject({ code: 'CLOSED' });
});

test('a handle that waits when its Holdfast closes is told so', async () => {
  const hang = defineWorkflow('hang', () => runStep('hangs', () => new Promise(() => undefined)));
  const holdfast = await launch({ workflows: [hang], shutdownTimeout: 0 });
  const result = (await holdfast.start(hang, { workflowId: 'hang' })).result();
  result.catch(() => undefined);
  await holdfast.close();
  await expect(result).rejects.toMatchObject({ code: 'CLOSED' });
  const other = await launch({ workflows: [] });
  expect(await other.handle('hang').status()).toBe('ENQUEUED');
  await other.close();
});

test("a caller's pg pool and a caller's postgres client do, and stay the caller's", async () => {
  const pool = new pg.Pool({ connectionString: bed.database.url });
  const onPool = await launch({ database: pool });
  expect(await (await onPool.start(run, {}, 3)).result()).toBe(6);
  await onPool.close();
  expect((await pool.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }]);
  await pool.end();

  const sql = postgres(bed.database.url);
  const onSql = await launch({ database: sql });
  expect(await (await onSql.start(run, {}, 3)).result()).toBe(6);
  await onSql.close();
  expect([...(await sql`SELECT 1 AS one`)]).toEqual([{ one: 1 }]);
  await sql.end();
});

test('several Holdfasts live in one process and one database, in schemas of their own', async () => {
  const one = await launch({ schema: 'tenant_one' });
  const two = await launch({ schema: 'tenant_two' });
  await (await one.start(run, { workflowId: 'shared-id' }, 1)).result();
  await expect(two.handle('shared-id').status()).rejects.toMatchObject({ code: 'WORKFLOW_NOT_FOUND' });
  await Promise.all([one.close(), two.close()]);
});

test('C63 a second evaluation under the same hot-reload key replaces the first: one executor, one pool', async () => {
  const first = await launch({ hotReloadKey: 'app' });
  const [second, third] = await Promise.all([launch({ hotReloadKey: 'app' }), launch({ hotReloadKey: 'app' })]);
  expect(first.health().state).toBe('stopped');
  expect(second.health().state).toBe('stopped');
  expect(third.health().state).toBe('running');
  const { rows } = await bed.sql.query<{ n: number }>(
    `SELECT count(*)::int AS n FROM holdfast.executor WHERE lease_until > clock_timestamp()`,
  );
  expect(rows).toEqual([{ n: 1 }]);
  await third.close();
});

test('C64 another version of the package in the process is detected, and nothing is launched', async () => {
  const copies = (globalThis as Record<symbol, Set<string>>)[Symbol.for('holdfast.copies')];
  copies?.add('0.0.0-other');
  await expect(launch({})).rejects.toMatchObject({ code: 'DUPLICATE_LIBRARY' });
  copies?.delete('0.0.0-other');
  const holdfast = await launch({});
  await holdfast.close();
});

test('a logger that throws, or rejects, harms nothing, and what it was to report is on standard error', async () => {
  const broken = () => Promise.reject(new Error('disk full'));
  const logger = {
    debug: broken,
    info: broken,
    warn: () => {
      throw new Error('circular');
    },
    error: broken,
  };
  const failing = defineWorkflow('failing', () => runStep('fails', () => Promise.reject(new RangeError('no'))));
  const written = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  try {
    const holdfast = await Holdfast.launch({ database: bed.database.url, workflows: [failing], logger });
    await expect((await holdfast.start(failing, {})).result()).rejects.toThrow(RangeError);
    await holdfast.close();
    const lines = written.mock.calls.map(([line]) => String(line));
    expect(lines.filter((line) => line.includes('A step failed for good.'))).toHaveLength(1);
    expect(lines.some((line) => line.includes('The logger failed.'))).toBe(true);
  } finally {
    written.mockRestore();
  }
});

test('C72 inputs, results and error messages of workflows do not reach the log', async () => {
  const lines: string[] = [];
  const keep = (message: string, fields?: object): void => void lines.push(JSON.stringify([message, fields]));
  const secret = 'hunter2-secret';
  const leaky = defineWorkflow('leaky', async (input: string) => {
    await runStep('fails', () => Promise.reject(new Error(`bad ${input}`))).catch(() => undefined);
    await runStep('unstorable', () => Promise.resolve({ [input]: () => input })).catch(() => undefined);
    throw new Error(input);
  });
  const holdfast = await launch({
    workflows: [leaky],
    logger: { debug: keep, info: keep, warn: keep, error: keep },
  });
  await (await holdfast.start(leaky, {}, secret)).result().catch(() => undefined);
  await holdfast.close();
  expect(lines.length).toBeGreaterThan(0);
  expect(lines.join('\n')).not.toContain(secret);
});

test('a codec stands between values and the database, in both directions', async () => {
  const reverse = (text: string): string => Array.from(text).reverse().join('');
  const holdfast = await launch({
    codecs: [{ name: 'reverse', encode: (t) => Promise.resolve(reverse(t)), decode: reverse }],
  });
  const handle = await holdfast.start(run, { workflowId: 'coded' }, 21);
  expect(await handle.result()).toBe(42);
  const { rows } = await bed.sql.query<{ output: string }>(
    `SELECT output FROM holdfast.workflow_outcome WHERE workflow_id = 'coded'`,
  );
  expect(rows[0]?.output).toContain('24');
  await holdfast.close();
  const without = await launch({});
  await expect(without.handle('coded').result()).rejects.toMatchObject({ code: 'VALUE_UNREADABLE' });
  await without.close();
});
