import { execFileSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';

import { isPortFree } from '../../../src/drivers/embedded-port.js';

/** Below the range of which Linux takes ports for outgoing connections: one stays free while its server is down. */
const PORTS = { from: 20_000, to: 32_000 } as const;
const POLL_MS = 20;

/** A port of 127.0.0.1 that a server can have again after it was down. */
export async function pickLastingPort(): Promise<number> {
  for (;;) {
    const port = randomInt(PORTS.from, PORTS.to);
    if (await isPortFree(port)) return port;
  }
}

/** To be asked while the parent lives: orphans do not tell whose they were. */
export function childrenOf(parent: number): readonly number[] {
  const table = execFileSync('ps', ['-A', '-o', 'ppid=,pid='], { encoding: 'utf8' });
  return table
    .split('\n')
    .map((line) => line.trim().split(/\s+/).map(Number))
    .flatMap(([ppid, pid]) => (ppid === parent && pid !== undefined ? [pid] : []));
}

/** Waits until all of them have ended by themselves; kills those that have not in time. */
export async function seeOff(processes: readonly number[], timeoutMs: number): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  for (const pid of processes) {
    while (isAlive(pid) && performance.now() < deadline) await pause(POLL_MS);
    if (isAlive(pid)) signalTo(pid, 'SIGKILL');
  }
}

/** It may end by itself at any moment. @returns whether it was there */
export function signalTo(pid: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, signal);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ESRCH') return false;
    throw error;
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}
