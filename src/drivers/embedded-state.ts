import { closeSync, fstatSync, openSync, readFileSync, readSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** More of a log than this helps nobody in an error message. */
const LOG_EXCERPT_BYTES = 8 * 1024;

/** Lines of `postmaster.pid`, as `pg_ctl --wait` reads them: the first is the server's process, the eighth its state. */
const PID_LINE = 0;
const STATE_LINE = 7;

/** Whether the server with this process ID accepts connections. The file is the server's own word, and needs no client. */
export function postmasterIsReady(clusterDir: string, serverPid: number): boolean {
  const lines = readPostmasterFile(clusterDir);
  return lines[PID_LINE] === String(serverPid) && lines[STATE_LINE]?.trim() === 'ready';
}

/** Whether some server runs on the cluster: the condition under which PostgreSQL refuses to start a second one. */
export function postmasterIsAlive(clusterDir: string): boolean {
  const pid = Number(readPostmasterFile(clusterDir)[PID_LINE]);
  if (!Number.isInteger(pid) || pid <= 0) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}

function readPostmasterFile(clusterDir: string): readonly string[] {
  try {
    return readFileSync(join(clusterDir, 'postmaster.pid'), 'utf8').split('\n');
  } catch {
    return [];
  }
}

/** Bytes in the log, to read on from there. */
export function logSize(logFile: string): number {
  return statSync(logFile, { throwIfNoEntry: false })?.size ?? 0;
}

/** The end of what was logged after `start` bytes. */
export function logSince(logFile: string, start: number): string {
  let file: number;
  try {
    file = openSync(logFile, 'r');
  } catch {
    return '';
  }
  try {
    const { size } = fstatSync(file);
    const from = Math.max(start, size - LOG_EXCERPT_BYTES);
    const excerpt = Buffer.alloc(Math.max(0, size - from));
    readSync(file, excerpt, 0, excerpt.length, from);
    return excerpt.toString('utf8').trim();
  } finally {
    closeSync(file);
  }
}
