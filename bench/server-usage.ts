import { readdirSync, readFileSync } from 'node:fs';
import { cpus } from 'node:os';

import type pg from 'pg';

/** Counters of the server at one moment. */
export interface ServerUsage {
  /** CPU time of all of the server's processes since they started; `null` where they cannot be seen. */
  readonly cpuMs: number | null;
  /** Position in the write-ahead log, in bytes. */
  readonly walBytes: number;
  /** CPU time of everything that runs on this machine, the server included when it is here. */
  readonly machineCpuMs: number;
}

/** Linux reports in clock ticks for programs (USER_HZ), which is 100 on all of its platforms that Node runs on. */
const MS_PER_TICK = 10;

/** Reads the server's counters: WAL over a connection, CPU from /proc where the server runs on this machine. */
export class ServerUsageReader {
  readonly #client: pg.Client;
  readonly #postmasterPid: number | null;

  private constructor(client: pg.Client, postmasterPid: number | null) {
    this.#client = client;
    this.#postmasterPid = postmasterPid;
  }

  static async create(client: pg.Client): Promise<ServerUsageReader> {
    const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
    const backend = rows[0] === undefined ? null : readProcess(rows[0].pid);
    // A server elsewhere has process IDs that here are nobody's or another program's.
    return new ServerUsageReader(client, backend?.program === 'postgres' ? backend.parentPid : null);
  }

  async read(): Promise<ServerUsage> {
    const cpuMs = this.#readCpu();
    const machineCpuMs = readMachineCpu();
    const { rows } = await this.#client.query<{ bytes: number }>(
      `SELECT (pg_current_wal_lsn() - '0/0')::float8 AS bytes`,
    );
    return { cpuMs, walBytes: rows[0]?.bytes ?? 0, machineCpuMs };
  }

  /** The postmaster, its children, and those children that ended: the sum only grows, whoever comes and goes. */
  #readCpu(): number | null {
    if (this.#postmasterPid === null) return null;
    const postmaster = readProcess(this.#postmasterPid);
    if (postmaster === null) return null;
    let ticks = postmaster.ownTicks + postmaster.endedChildrenTicks;
    for (const entry of readdirSync('/proc')) {
      if (!/^\d+$/.test(entry)) continue;
      const candidate = readProcess(Number(entry));
      if (candidate?.parentPid === this.#postmasterPid) ticks += candidate.ownTicks;
    }
    return ticks * MS_PER_TICK;
  }
}

function readMachineCpu(): number {
  return cpus().reduce((sum, { times }) => sum + times.user + times.nice + times.sys + times.irq, 0);
}

interface ProcessUsage {
  readonly program: string;
  readonly parentPid: number;
  readonly ownTicks: number;
  readonly endedChildrenTicks: number;
}

/** `/proc/<pid>/stat`, see proc(5); `null` when there is no such process, or no /proc. */
function readProcess(pid: number): ProcessUsage | null {
  let line: string;
  try {
    line = readFileSync(`/proc/${String(pid)}/stat`, 'utf8');
  } catch {
    return null;
  }
  // The program's name stands in parentheses and may hold spaces and parentheses: the fields begin after the last one.
  const end = line.lastIndexOf(')');
  const fields = line.slice(end + 2).split(' ');
  // proc(5) counts from 1 with the process ID; the first field here is its third.
  const field = (number: number): number => Number(fields[number - 3]);
  return {
    program: line.slice(line.indexOf('(') + 1, end),
    parentPid: field(4),
    ownTicks: field(14) + field(15),
    endedChildrenTicks: field(16) + field(17),
  };
}
