import type { QueueDefinition } from '../../../src/index.js';
import type { Job } from './messages.js';

export interface FleetOptions {
  readonly executors: number;
  readonly workflows: number;
  /** How long executors are killed and stopped. */
  readonly chaosMs: number;
  /** How long what is left may take once everybody is well again. */
  readonly healMs: number;
  readonly seed: number;
  readonly leaseMs: number;
  /** Mean time between two disturbances; each is a kill or a pause. */
  readonly disturbanceMs: number;
  /** How much later than the lease a killed executor's work may go on elsewhere. */
  readonly recoverySlackMs: number;
  /** How long an executor that is neither killed nor stopped may show no progress. */
  readonly stallMs: number;
}

/** One queue for each kind of limit, one with all of them. */
export interface Plan {
  readonly queues: readonly QueueDefinition[];
  readonly jobs: readonly Job[];
}

const STEPS = 3;
const KEYS = 20;
/** Share of its slots that a queue needs to be through in time. The rest is for what kills and pauses cost. */
const LOAD = 0.5;
const LEAST_BODY_MS = 5;
const MOST_BODY_MS = 2_000;

/** A fifth of the workflows into each queue, the last fifth started directly; bodies so long that the queues have a backlog. */
export function planFleet({ executors, workflows, chaosMs }: FleetOptions): Plan {
  const queues: QueueDefinition[] = [
    { name: 'global', concurrency: Math.max(2, executors - 2) },
    { name: 'each', executorConcurrency: 2 },
    { name: 'keyed', keyConcurrency: 1 },
    { name: 'all', concurrency: executors, executorConcurrency: 2, keyConcurrency: 1 },
  ];
  const slots: Readonly<Record<string, number>> = {
    global: Math.max(2, executors - 2),
    each: 2 * executors,
    keyed: KEYS,
    all: executors,
    '': executors,
  };
  const names = [...queues.map(({ name }) => name), ''];
  const share = workflows / names.length;
  const jobs = Array.from({ length: workflows }, (_, index): Job => {
    const queue = names[index % names.length] ?? '';
    const bodyMs = ((slots[queue] ?? 1) * chaosMs * LOAD) / share / STEPS;
    return {
      workflowId: `job ${String(index)}`,
      queue,
      key: queue === 'keyed' || queue === 'all' ? `key ${String(Math.floor(index / names.length) % KEYS)}` : '',
      steps: STEPS,
      bodyMs: Math.round(Math.min(MOST_BODY_MS, Math.max(LEAST_BODY_MS, bodyMs))),
    };
  });
  return { queues, jobs };
}
