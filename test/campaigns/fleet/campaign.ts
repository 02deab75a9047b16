import { setMaxListeners } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

import { HoldfastClient } from '../../../src/index.js';
import { SeededRandom } from '../support/seeded-random.js';
import { disturb } from './chaos.js';
import { Fleet } from './fleet.js';
import { Ledger, readLedger, type LedgerEvent } from './ledger.js';
import type { Job } from './messages.js';
import { applyMutant, type Mutant } from './mutants.js';
import { planFleet, type FleetOptions, type Plan } from './plan.js';
import { silentLogger } from '../support/silent-logger.js';

/** All jobs are handed over within this share of the time, a wave at a time. */
const FEEDING_SHARE = 0.6;
const WAVES = 20;

/** What one process says about the outcomes of all workflows, in the order of the plan. */
export interface Observation {
  readonly observer: string;
  /** The runs whose results were recorded; undefined: no such outcome in time. */
  readonly outcomes: readonly (readonly string[] | undefined)[];
}

/** Everything that the judges get to see. */
export interface Evidence {
  readonly options: FleetOptions;
  readonly plan: Plan;
  readonly events: readonly LedgerEvent[];
  readonly observations: readonly Observation[];
}

/** The program of an executor process. */
export const EXECUTOR_PROGRAM = new URL('./executor-process.ts', import.meta.url);

export interface FleetRun {
  /** Connection string of an empty database. */
  readonly database: string;
  /** {@link EXECUTOR_PROGRAM}, compiled. */
  readonly program: string;
  readonly options: FleetOptions;
  readonly mutant?: Mutant | undefined;
  readonly progress?: (text: string) => void;
}

/** Runs the whole campaign. */
export async function runFleetCampaign({
  database,
  program,
  options,
  mutant,
  progress = () => undefined,
}: FleetRun): Promise<Evidence> {
  const random = new SeededRandom(options.seed);
  const plan = planFleet(options);
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-fleet-'));
  const path = join(folder, 'ledger.jsonl');
  const ledger = new Ledger(path);
  const fleet = new Fleet(program, ledger, { database, ledger: path, leaseMs: options.leaseMs });
  try {
    const client = await HoldfastClient.connect({ database, migrate: true, logger: silentLogger });
    try {
      for (const queue of plan.queues) await client.queues.define(queue);
      if (mutant !== undefined) await applyMutant(database, mutant);
      await Promise.all(Array.from({ length: options.executors }, () => fleet.launch()));
      progress(`${String(options.executors)} executors run`);
      await Promise.all([feed(client, fleet, plan, options), disturb(fleet, options, random)]);
      ledger.tell({ what: 'healed' });
      progress('all executors are well again');
      await Promise.all(fleet.running.map((executor) => executor.calm()));
      const observations = await observeAll(client, fleet, plan, options.healMs);
      return { options, plan, events: readLedger(path), observations };
    } finally {
      await client.close();
    }
  } finally {
    fleet.continueAll();
    await fleet.killAll();
    await rm(folder, { recursive: true, force: true });
  }
}

/** Hands the jobs over: to the queues by the client, the others to executors that may be killed before they have answered. */
async function feed(client: HoldfastClient, fleet: Fleet, plan: Plan, options: FleetOptions): Promise<void> {
  const size = Math.ceil(plan.jobs.length / WAVES);
  for (let wave = 0; wave < WAVES; wave++) {
    const jobs = plan.jobs.slice(wave * size, (wave + 1) * size);
    const queued = plan.queues.map(async ({ name }) => {
      const items = jobs
        .filter(({ queue }) => queue === name)
        .map((job) => ({ args: [job], workflowId: job.workflowId, ...(job.key === '' ? {} : { key: job.key }) }));
      const results = await client.enqueueMany('job', { queue: name }, items);
      for (const result of results) if (!result.ok) throw result.error;
    });
    const direct = jobs.filter(({ queue }) => queue === '').map((job) => startSomewhere(fleet, job));
    await Promise.all([...queued, ...direct, pause((options.chaosMs * FEEDING_SHARE) / WAVES)]);
  }
}

/** Asks one executor after the other, until one of them acknowledges. */
async function startSomewhere(fleet: Fleet, job: Job): Promise<void> {
  for (let turn = Number(job.workflowId.replace(/\D/g, '')); ; turn++) {
    const { running } = fleet;
    const executor = running[turn % running.length];
    try {
      await executor?.start(job);
      if (executor !== undefined) return;
    } catch {
      // It was killed: whether or not it had recorded the start, another one is asked for the same ID.
    }
    await pause(10);
  }
}

/** The client, and every executor that runs at the end. */
async function observeAll(
  client: HoldfastClient,
  fleet: Fleet,
  plan: Plan,
  timeoutMs: number,
): Promise<readonly Observation[]> {
  const workflowIds = plan.jobs.map(({ workflowId }) => workflowId);
  const gaveUp = new AbortController();
  setMaxListeners(workflowIds.length, gaveUp.signal);
  const timer = setTimeout(() => {
    gaveUp.abort();
  }, timeoutMs);
  const outcomes = await Promise.all(
    workflowIds.map((workflowId) =>
      client
        .handle<readonly string[]>(workflowId)
        .result({ signal: gaveUp.signal })
        .catch(() => undefined),
    ),
  );
  clearTimeout(timer);
  const finished = workflowIds.filter((_, index) => outcomes[index] !== undefined);
  const others = fleet.running.map(async (executor): Promise<Observation> => {
    const seen = await executor.outcomes(finished);
    const bySeen = new Map(finished.map((workflowId, index) => [workflowId, seen[index] as readonly string[]]));
    return { observer: executor.executorId, outcomes: workflowIds.map((workflowId) => bySeen.get(workflowId)) };
  });
  return [{ observer: 'client', outcomes }, ...(await Promise.all(others))];
}
