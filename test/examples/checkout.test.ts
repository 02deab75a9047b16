import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { waitUntil } from '../support/launch.js';

let database: TestDatabase;
let folder: string;
beforeAll(async () => {
  database = await createTestDatabase();
  folder = await mkdtemp(join(tmpdir(), 'holdfast-example-'));
});
afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
  await database.drop();
});

interface Run {
  readonly exitCode: number | null;
  readonly output: string;
}

/** Runs the example as `npm start` does; `onOutput` may interfere. */
function runExample(
  args: readonly string[],
  databaseUrl: string,
  onOutput?: (text: string, pid: number) => void,
): Promise<Run> {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, ['--import', 'tsx', 'examples/checkout/main.ts', ...args], {
      env: { ...process.env, DATABASE_URL: databaseUrl },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    const collect = (chunk: Buffer): void => {
      output += chunk.toString();
      onOutput?.(output, child.pid ?? 0);
    };
    child.stdout.on('data', collect);
    child.stderr.on('data', collect);
    child.on('close', (exitCode) => {
      resolve({ exitCode, output });
    });
  });
}

async function ordersFile(name: string, content: string | Buffer): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, content);
  return path;
}

async function leftBehind(): Promise<{ schemas: number; connections: number }> {
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  const { rows } = await client.query<{ schemas: number; connections: number }>(
    `SELECT (SELECT count(*)::int FROM pg_namespace WHERE nspname LIKE 'checkout%') AS schemas,
            (SELECT count(*)::int FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()) AS connections`,
  );
  await client.end();
  return rows[0] ?? { schemas: -1, connections: -1 };
}

async function expectNothingLeft(): Promise<void> {
  await waitUntil(async () => {
    const { schemas, connections } = await leftBehind();
    return schemas === 0 && connections === 0;
  }, 'nothing is left behind');
}

const order = (id: string): string => JSON.stringify({ id, item: 'Tea pot', quantity: 1, cents: 1 });

test('the sample runs through every stage on a database that is given, and leaves nothing behind', async () => {
  const { exitCode, output } = await runExample([], database.url);
  expect(output).toContain('kill -9 for worker A');
  expect(output).toMatch(/A-1001: reserve kept as recorded, went on from "charge"/);
  expect(output).toContain('refused, its ownership token is not the recorded one');
  expect(output).toMatch(/A-1003 is CANCELLED/);
  expect(output).toMatch(/every recorded step ran once/);
  expect(exitCode).toBe(0);
  await expectNothingLeft();
});

test('it sets up an embedded PostgreSQL by itself', async () => {
  const path = await ordersFile('one.jsonl', `${order('only')}\n`);
  const { exitCode, output } = await runExample(['--orders', path], '');
  expect(output).toContain('an embedded PostgreSQL');
  expect(output).toContain('There is no second order');
  expect(output).toMatch(/1 order: every recorded step ran once/);
  expect(exitCode).toBe(0);
});

test('bad lines of an orders file are reported with their numbers and skipped', async () => {
  const lines = [
    `\ufeff${order('bom')}`,
    '{"id": "broken',
    `${order('crlf')}\r`,
    '',
    order('bom'),
    JSON.stringify({ id: 'cheap', item: 'x', quantity: 1, cents: 0 }),
    JSON.stringify({ id: 'nul\0', item: 'x', quantity: 1, cents: 1 }),
    order(`🦀 "quoted" 'id'`),
    'x'.repeat(10 * 1024 * 1024),
    '[]',
  ];
  const path = await ordersFile('hostile.jsonl', lines.join('\n'));
  const { exitCode, output } = await runExample(['--orders', path], database.url);
  expect(output).toContain('3 orders read');
  for (const lineNumber of [2, 5, 6, 7, 9, 10]) expect(output).toContain(`Line ${String(lineNumber)} skipped`);
  expect(output).toMatch(/3 orders: every recorded step ran once/);
  expect(exitCode).toBe(0);
  await expectNothingLeft();
});

test.each<[string, string[], number, RegExp]>([
  ['a file that is not there', ['--orders', 'no-such-file'], 1, /There is no file/],
  ['an unknown option', ['--order', 'x'], 2, /Usage/],
  ['a request for help', ['--help'], 0, /Usage/],
])('%s gets an answer', async (_, args, expected, text) => {
  const { exitCode, output } = await runExample(args, database.url);
  expect(output).toMatch(text);
  expect(exitCode).toBe(expected);
});

test('a file without a usable line gets an answer', async () => {
  const { exitCode, output } = await runExample(['--orders', await ordersFile('empty.jsonl', '\n\n')], database.url);
  expect(output).toContain('There is no order to place');
  expect(exitCode).toBe(1);
});

test('interrupted in the midst, it leaves no process, schema or connection behind', async () => {
  let interrupted = false;
  const { exitCode } = await runExample([], database.url, (output, pid) => {
    if (interrupted || !output.includes('Another worker recovers')) return;
    interrupted = true;
    process.kill(pid, 'SIGINT');
  });
  expect(exitCode).toBe(130);
  await expectNothingLeft();
});
