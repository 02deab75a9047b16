import { readFileSync } from 'node:fs';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { expectCleanEnd, runExample, type Run } from './support/run-example.js';

/** The temporary directory of the program that is run: what it leaves there is seen. */
let scratch: string;
beforeEach(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'holdfast-example-'));
  // An embedded server of root's runs as another user, who has to get there.
  await chmod(scratch, 0o755);
});
afterEach(() => rm(scratch, { recursive: true, force: true }));

/** Runs the demonstration; `onOutput` may interfere. */
function runPayments(onOutput?: (output: string, group: number) => void): Promise<Run> {
  return runExample({ command: ['examples/payments/main.ts'], environment: { TMPDIR: scratch }, onOutput });
}

test('every misfortune of a payment ends as it should, by the ledger of the provider', async () => {
  const run = await runPayments();
  for (const line of [
    'The customer was told WORKFLOW_CANCELLED, and the provider has closed the order.',
    'It did not charge again: it asked. The order is confirmed.',
    'The customer was told WORKFLOW_CANCELLED, and has the money back.',
    "OK: by the provider's ledger, 7 confirmed orders are paid once, 5 others not at all (9 charges, 2 given back)",
  ]) {
    expect(run.output).toContain(line);
  }
  const rows = run.output.split('\n').map((row) => row.trim().split(/ {2,}/));
  const rowOf = (order: string): readonly string[] | undefined =>
    rows.find((row) => row[0] === order && row.length > 2);
  expect(rowOf('A-02')).toEqual(['A-02', 'CARD_DECLINED', 'the provider declines the card']);
  expect(rowOf('A-03')?.slice(1, 4)).toEqual(['confirmed', '1 ×', '1 ×']);
  expect(rowOf('A-08')?.at(-1)).toBe('cancelled while the charge is still on its way (and turned away late)');
  expect(run.output.split('\n').filter((line) => line.includes('Error'))).toEqual([]);
  expect(run.exitCode).toBe(0);
  await expectCleanEnd(run, scratch);
});

test('ended by a signal, it leaves nothing behind', async () => {
  let ended = false;
  const run = await runPayments((output, group) => {
    if (ended || !output.includes('A-12')) return;
    ended = true;
    // As a terminal does it: to every process of the group.
    process.kill(-group, 'SIGINT');
  });
  expect(run.exitCode, run.output).toBe(130);
  await expectCleanEnd(run, scratch);
});

test('the code that its README shows is its code', () => {
  const source = ['orders.ts', 'payment-provider.ts', 'customers.ts']
    .map((file) => readFileSync(`examples/payments/${file}`, 'utf8'))
    .join('\n');
  const lines = new Set(source.split('\n').map((line) => line.trim()));
  const readme = readFileSync('examples/payments/README.md', 'utf8');
  const shown = [...readme.matchAll(/```ts\n([\s\S]*?)```/g)].flatMap(([, code = '']) => code.trim().split('\n'));
  expect(shown.length).toBeGreaterThan(5);
  expect(shown.map((line) => line.trim()).filter((line) => !lines.has(line))).toEqual([]);
});
