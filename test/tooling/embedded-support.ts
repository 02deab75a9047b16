import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';

import pg from 'pg';
import { onTestFinished } from 'vitest';

export const isRoot = process.getuid?.() === 0;

/** A directory that is removed when the test ends. */
export function scratchDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'holdfast-test-'));
  onTestFinished(() => {
    rmSync(directory, { recursive: true, force: true });
  });
  return directory;
}

/** One process with an embedded server. */
export interface EmbeddedUser {
  readonly child: ChildProcessByStdio<Writable, Readable, null>;
  readonly connectionString: string;
  /** Lets the process call `stop()` and end. */
  finish(): Promise<void>;
}

export async function startEmbeddedUser(dataDir?: string): Promise<EmbeddedUser> {
  const script = fileURLToPath(new URL('./fixtures/embedded-user.ts', import.meta.url));
  const child = spawn(process.execPath, ['--import', 'tsx', script, ...(dataDir === undefined ? [] : [dataDir])], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  onTestFinished(() => {
    child.kill('SIGKILL');
  });
  const exited = once(child, 'exit');
  const lines = createInterface({ input: child.stdout });
  const connectionString = await Promise.race([
    once(lines, 'line').then(([line]) => String(line)),
    exited.then(() => Promise.reject(new Error('The process ended before its server was ready.'))),
  ]);
  return {
    child,
    connectionString,
    finish: async () => {
      child.stdin.end();
      await exited;
    },
  };
}

/** Runs one statement on a connection of its own. */
export async function runStatement(connectionString: string, statement: string): Promise<unknown> {
  const client = new pg.Client({ connectionString });
  // A server that is shut down says so to a session that asks nothing.
  client.on('error', () => undefined);
  await client.connect();
  try {
    const { rows } = await client.query<{ value: unknown }>(statement);
    return rows[0]?.value;
  } finally {
    await client.end();
  }
}

export async function acceptsConnections(connectionString: string): Promise<boolean> {
  try {
    await runStatement(connectionString, 'SELECT 1 AS value');
    return true;
  } catch {
    return false;
  }
}

/** The process that started process `pid`; Linux only. */
export function parentOf(pid: number): number {
  const parent = /^PPid:\s*(\d+)$/m.exec(readFileSync(`/proc/${String(pid)}/status`, 'utf8'))?.[1];
  return Number(parent);
}
