import { closeSync, fstatSync, openSync, readFileSync, readSync, statSync, truncateSync } from 'node:fs';
import { join } from 'node:path';

/** More of a log than this helps nobody in an error message. */
const LOG_EXCERPT_BYTES = 8 * 1024;

/** A kept directory's log starts anew beyond this. */
const MAX_LOG_BYTES = 10 * 1024 * 1024;

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

/** The log that is appended to from here on. It can be read even when a temporary directory is removed under it. */
export class ServerLog {
  readonly descriptor: number;
  readonly #start: number;

  constructor(dataDir: string) {
    const file = join(dataDir, 'server.log');
    if ((statSync(file, { throwIfNoEntry: false })?.size ?? 0) > MAX_LOG_BYTES) truncateSync(file);
    this.descriptor = openSync(file, 'a+', 0o600);
    this.#start = fstatSync(this.descriptor).size;
  }

  /** The end of what was logged since it was opened. */
  excerpt(): string {
    const { size } = fstatSync(this.descriptor);
    const from = Math.max(this.#start, size - LOG_EXCERPT_BYTES);
    const bytes = Buffer.alloc(Math.max(0, size - from));
    readSync(this.descriptor, bytes, 0, bytes.length, from);
    return bytes.toString('utf8').trim();
  }

  /** Closes this process's descriptor; the server has its own. */
  close(): void {
    closeSync(this.descriptor);
  }
}
