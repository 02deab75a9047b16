import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { waitUntil } from '../support/launch.js';
import { expectCleanEnd, runExample, type Run } from './support/run-example.js';

let database: TestDatabase;
let folder: string;
/** The temporary directory of the program that is run: what it leaves there is seen. */
let scratch: string;

beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'holdfast-example-'));
  scratch = join(folder, 'scratch');
  await mkdir(scratch);
  // An embedded server of root's runs as another user, who has to get there.
  await chmod(folder, 0o755);
});
afterEach(() => rm(folder, { recursive: true, force: true }));

/** Runs the example as `npm start` does; `onOutput` may interfere. */
function runCheckout(
  args: readonly string[],
  databaseUrl: string,
  onOutput?: (output: string, group: number) => void,
): Promise<Run> {
  return runExample({
    command: ['examples/checkout/main.ts', ...args],
    environment: { DATABASE_URL: databaseUrl, TMPDIR: scratch },
    onOutput,
  });
}

async function ordersFile(content: string | Buffer): Promise<string> {
  const path = join(folder, 'orders.jsonl');
  await writeFile(path, content);
  return path;
}

function order(id: string, changes: object = {}): string {
  return JSON.stringify({ id, item: 'Tea pot', quantity: 1, cents: 4_990, ...changes });
}

async function expectNothingLeft(run: Run): Promise<void> {
  await expectCleanEnd(run, scratch);
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  try {
    const { rows: schemas } = await client.query(`SELECT nspname FROM pg_namespace WHERE nspname LIKE 'checkout%'`);
    expect(schemas, 'no schema is left').toEqual([]);
    // The server hears of a killed client when it next writes to it.
    await waitUntil(async () => {
      const { rows } = await client.query(
        'SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()',
      );
      return rows.length === 0;
    }, 'no connection is left');
  } finally {
    await client.end();
  }
}

test('the sample is told to its end: kill, zombie, cancel, and everything recorded ran once', async () => {
  const run = await runCheckout([], database.url);
  for (const line of [
    'A-1001 is just being charged; the others are being packed.',
    'A-1001: epoch 1 → 2, continued from charge (kept reserve).',
    'A-1004: epoch 1 → 2, continued from sleep (kept reserve, charge).',
    'Its late write was refused: the record is unchanged.',
    'It started no further step.',
    'That is the same receipt.',
    'Epoch 1 of A-1002: started, then taken over.',
    'Epoch 2 of A-1002: recovered, then completed.',
    'Cancelled while A-1003 was being packed: CANCELLED.',
    'Resumed: it kept reserve, charge',
    'OK: 8 orders succeeded; each of 32 recorded steps was recorded once and never run again.',
    'Only what was interrupted ran twice, with the same idempotency key: charge of A-1001, charge of A-1002.',
  ]) {
    expect(run.output).toContain(line);
  }
  expect(run.output, 'no colours where no person looks').not.toContain('\u001b');
  expect(run.exitCode).toBe(0);
  await expectNothingLeft(run);
});

test('one order is enough, on an embedded PostgreSQL that it sets up and removes', async () => {
  const run = await runCheckout(['--orders', await ordersFile(order('only'))], '');
  expect(run.output).toContain('Records go to an embedded PostgreSQL');
  expect(run.output.match(/Skipped: no order is left for it\./g)).toHaveLength(2);
  expect(run.output).toContain('OK: 1 order succeeded; each of 4 recorded steps');
  expect(run.exitCode).toBe(0);
  await expectNothingLeft(run);
});

test('lines of a hostile file are reported with their numbers and skipped, the good ones are placed', async () => {
  const lines: [text: string | Buffer, report?: string][] = [
    [`\ufeff${order('mark')}\r`],
    ['{"id": "broken\r', 'Line 2: not JSON'],
    ['\r'],
    [order('mark'), 'Line 4: order "mark" is on line 1 already'],
    [order('free', { cents: 0 }), 'Line 5: not an order: cents'],
    [order('more', { discount: 1 }), 'Line 6: not an order: Unrecognized key: "discount"'],
    [order('nul\0'), 'Line 7: not an order: id: must not contain NUL'],
    [order('half \ud83d'), 'Line 8: not an order: id: must not contain NUL or half of a surrogate pair'],
    ['{"id":"raw\0"}', 'Line 9: not JSON'],
    ['x'.repeat(10 * 1024 * 1024), 'Line 10: too long'],
    [Buffer.from([0xff, 0xfe]), 'Line 11: not text in UTF-8'],
    ['[]', 'Line 12: not an order'],
    ['null', 'Line 13: not an order'],
    ['{"__proto__":{"id":"x"}}', 'Line 14: not an order'],
    [order('item with NUL', { item: 'a\0b\ud83dc' })],
    [order(`🦀 "it's" \\ %s $1 --`)],
    [order('\u001b[31mred')],
    [order('two\u2028lines')],
  ];
  const content = Buffer.concat(lines.flatMap(([text]) => [Buffer.from(text), Buffer.from('\n')]));
  const run = await runCheckout(['--orders', await ordersFile(content)], database.url);
  for (const [, report] of lines) if (report !== undefined) expect(run.output).toContain(report);
  expect(run.output).toContain('5 orders, 12 lines skipped.');
  expect(run.output).toContain(`🦀 "it's" \\ %s $1 --`);
  expect(run.output).toContain('\\u{1b}[31mred');
  expect(run.output, 'no order steers the terminal').not.toContain('\u001b');
  expect(run.output).toContain('OK: 5 orders succeeded');
  expect(run.exitCode).toBe(0);
  await expectNothingLeft(run);
});

test('a file without a usable order ends with a message and exit code 1', async () => {
  for (const content of ['', '\ufeff\r\n\r\n', 'nonsense\n']) {
    const run = await runCheckout(['--orders', await ordersFile(content)], database.url);
    expect(run.output).toContain('has no usable order.');
    expect(run.exitCode).toBe(1);
    await expectNothingLeft(run);
  }
});

test.each<[what: string, args: string[], exitCode: number, text: string]>([
  ['a file that is not there', ['--orders', 'no-such-file'], 1, 'There is no file "no-such-file".'],
  ['a directory', ['--orders', '/'], 1, '"/" is a directory'],
  ['an unknown option', ['--order', 'x'], 2, 'Usage: npm start'],
  ['an argument that is no option', ['orders.jsonl'], 2, 'Usage: npm start'],
  ['a request for help', ['--help'], 0, 'Usage: npm start'],
])('%s gets an answer', async (_, args, exitCode, text) => {
  const run = await runCheckout(args, database.url);
  expect(run.output).toContain(text);
  expect(run.exitCode).toBe(exitCode);
});

test('a database that cannot be reached gets an answer that does not repeat the password', async () => {
  const run = await runCheckout([], 'postgresql://someone:open-sesame@127.0.0.1:1/nowhere');
  expect(run.output).toContain('The database of DATABASE_URL cannot be used');
  expect(run.output).not.toContain('open-sesame');
  expect(run.exitCode).toBe(1);
});

test.each([
  ['Worker A takes orders', 'SIGINT', 130],
  ['SIGSTOP: worker C', 'SIGINT', 130],
  ['Worker B carries on', 'SIGTERM', 143],
] as const)('ended at "%s" by %s, it leaves nothing behind', async (moment, signal, exitCode) => {
  let ended = false;
  const run = await runCheckout([], database.url, (output, group) => {
    if (ended || !output.includes(moment)) return;
    ended = true;
    // As a terminal does it: to every process of the group.
    process.kill(-group, signal);
  });
  expect(run.exitCode, run.output).toBe(exitCode);
  expect(run.output.split('\n').filter((line) => line.includes('Error'))).toEqual([]);
  await expectNothingLeft(run);
});

test('when a worker is lost that was not to be, it says so, ends with exit code 1, and leaves nothing behind', async () => {
  let killed = false;
  const run = await runCheckout([], database.url, (output) => {
    const worker = /Worker B carries on\n[^]*? Process (\d+)[^]*Its late write was refused/.exec(output)?.[1];
    if (killed || worker === undefined) return;
    killed = true;
    process.kill(Number(worker), 'SIGKILL');
  });
  expect(run.output).toMatch(/Error: Worker B /);
  expect(run.output).not.toContain('OK:');
  expect(run.exitCode).toBe(1);
  await expectNothingLeft(run);
});
