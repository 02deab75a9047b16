import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { chmod, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { waitUntil } from '../support/launch.js';

/** The temporary directory of the program that is run: what it leaves there is seen. */
let scratch: string;
beforeEach(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'holdfast-example-'));
  // An embedded server of root's runs as another user, who has to get there.
  await chmod(scratch, 0o755);
});
afterEach(() => rm(scratch, { recursive: true, force: true }));

interface Run {
  readonly exitCode: number | null;
  readonly output: string;
  /** The process group in which the program and its processes ran. */
  readonly group: number;
}

/** Runs the demonstration in a process group of its own; `onOutput` may interfere. */
function runExample(onOutput: (output: string, group: number) => void = () => undefined): Promise<Run> {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, ['--import', 'tsx', 'examples/payments/main.ts'], {
      env: { ...process.env, TMPDIR: scratch },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    });
    const group = child.pid ?? 0;
    let output = '';
    const collect = (chunk: Buffer): void => {
      output += chunk.toString();
      onOutput(output, group);
    };
    child.stdout.on('data', collect);
    child.stderr.on('data', collect);
    child.on('close', (exitCode) => {
      resolve({ exitCode, output, group });
    });
  });
}

async function expectNothingLeft({ group }: Run): Promise<void> {
  await waitUntil(() => !isAlive(group), 'no process of its group lives');
  // The loader keeps its cache there, and so does the embedded server, where its user cannot run the installed binaries.
  const files = (await readdir(scratch)).filter(
    (name) => !name.startsWith('tsx-') && !/^holdfast-postgres-\d/.test(name),
  );
  expect(files, 'its temporary directory is empty').toEqual([]);
}

function isAlive(group: number): boolean {
  try {
    return process.kill(-group, 0);
  } catch {
    return false;
  }
}

test('every misfortune of a payment ends as it should, by the ledger of the provider', async () => {
  const run = await runExample();
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
  expect(run.output).not.toContain('Error');
  expect(run.exitCode).toBe(0);
  await expectNothingLeft(run);
});

test('ended by a signal, it leaves nothing behind', async () => {
  let ended = false;
  const run = await runExample((output, group) => {
    if (ended || !output.includes('A-12')) return;
    ended = true;
    // As a terminal does it: to every process of the group.
    process.kill(-group, 'SIGINT');
  });
  expect(run.exitCode).toBe(130);
  await expectNothingLeft(run);
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
