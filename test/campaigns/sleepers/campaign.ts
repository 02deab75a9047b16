import { setTimeout as pause } from 'node:timers/promises';

import pg from 'pg';

import { cloneWorkflow } from './clone.js';
import { SleeperExecutor } from './executor.js';
import type { Memory } from './messages.js';

/** The program of the executor's process. */
export const EXECUTOR_PROGRAM = new URL('./executor-process.ts', import.meta.url);

const TEMPLATE = 'template';
/** From the moment in which the timers are begun to be written until the first of them is due. */
const AHEAD_MS = 5_000;
/** How long after the last one was due all have to have fired. */
const PATIENCE_MS = 60_000;
const SUSPENDED_WITHIN_MS = 120_000;

export interface SleeperOptions {
  /** Workflows that sleep all the time. */
  readonly count: number;
  /** Workflows that are due, a second. */
  readonly rate: number;
  readonly seconds: number;
}

/** An executor that has just launched, and has been left alone for a while. */
export interface Idle {
  readonly launchMs: number;
  readonly memory: Memory;
}

export interface SleeperReport {
  readonly empty: Idle;
  readonly full: Idle;
  readonly afterwards: Memory;
  /** How long after it was due each timer fired, in milliseconds, from the shortest to the longest. */
  readonly latenessMs: readonly number[];
  readonly missing: number;
  readonly twice: number;
}

export interface SleeperRun {
  /** Connection string of an empty database. */
  readonly database: string;
  /** {@link EXECUTOR_PROGRAM}, compiled. */
  readonly program: string;
  readonly options: SleeperOptions;
  readonly progress?: (text: string) => void;
  /** How long an executor is left alone before its memory is read. Default 5 s. */
  readonly settleMs?: number;
}

/** One executor with nothing to do, then the same with all those sleepers, then timers that fire among them. */
export async function runSleeperCampaign(run: SleeperRun): Promise<SleeperReport> {
  const { database, program, options, progress = () => undefined, settleMs = 5_000 } = run;
  const sql = new pg.Client({ connectionString: database });
  await sql.connect();
  let executor: SleeperExecutor | undefined;
  try {
    // The first launch creates the schema; it is not the one that is measured.
    executor = await SleeperExecutor.launch(program, { database });
    await executor.start(TEMPLATE);
    progress('waiting for the template to be suspended');
    await suspended(sql);
    await executor.kill();
    executor = await SleeperExecutor.launch(program, { database });
    const empty = await leaveAlone(executor, settleMs);
    await executor.kill();

    progress(`writing ${String(options.count)} sleepers`);
    await cloneWorkflow(sql, {
      template: TEMPLATE,
      prefix: 'sleeper',
      count: options.count,
      dueAt: `clock_timestamp() + interval '1 day' + n * interval '10 ms'`,
    });
    await sql.query('VACUUM ANALYZE');
    executor = await SleeperExecutor.launch(program, { database });
    const full = await leaveAlone(executor, settleMs);

    progress(`${String(options.rate)} timers a second for ${String(options.seconds)} s`);
    return { empty, full, ...(await fire(sql, executor, options)) };
  } finally {
    await executor?.kill();
    await sql.end();
  }
}

async function suspended(sql: pg.Client): Promise<void> {
  const until = performance.now() + SUSPENDED_WITHIN_MS;
  while (performance.now() < until) {
    const { rowCount } = await sql.query(
      `SELECT FROM holdfast.workflow_status WHERE workflow_id = $1 AND status = 'SUSPENDED'`,
      [TEMPLATE],
    );
    if (rowCount === 1) return;
    await pause(50);
  }
  throw new Error('A workflow that sleeps for an hour was not suspended.');
}

async function leaveAlone(executor: SleeperExecutor, settleMs: number): Promise<Idle> {
  await pause(settleMs);
  return { launchMs: executor.launchMs, memory: await executor.memory() };
}

async function fire(
  sql: pg.Client,
  executor: SleeperExecutor,
  { rate, seconds }: SleeperOptions,
): Promise<Omit<SleeperReport, 'empty' | 'full'>> {
  const count = Math.ceil(rate * seconds);
  const firstAt = Date.now() + AHEAD_MS;
  const everyMs = 1_000 / rate;
  const prefix = 'timer';
  await cloneWorkflow(sql, {
    template: TEMPLATE,
    prefix,
    count,
    dueAt: `to_timestamp((${String(firstAt)} + n * ${String(everyMs)}::float8) / 1000)`,
  });
  const until = firstAt + seconds * 1_000 + PATIENCE_MS;
  while (executor.fired.length < count && Date.now() < until) await pause(100);
  const lateness = new Map<string, number>();
  for (const { workflowId, at } of executor.fired) {
    const dueAt = firstAt + Number(workflowId.slice(prefix.length + 1)) * everyMs;
    if (!lateness.has(workflowId)) lateness.set(workflowId, at - dueAt);
  }
  return {
    afterwards: await executor.memory(),
    latenessMs: [...lateness.values()].sort((a, b) => a - b),
    missing: count - lateness.size,
    twice: executor.fired.length - lateness.size,
  };
}
