import type { QueueOrder, Work } from './protocol.js';

/** One shape of load: how many workflows are in flight at once, and how many steps each of them has. */
export interface Scenario {
  readonly name: string;
  readonly work: Exclude<Work, 'checkpoint' | 'commit' | 'checked-transaction'>;
  readonly steps: number;
  readonly concurrency: number;
  /**
   * How many times the usual window. Workflows that start together go on in step, so that starts, steps and ends come in
   * waves; a window has to hold several of them. At 500 the peer needs five seconds for one.
   */
  readonly windows: number;
  readonly queue: QueueOrder | null;
  /** What sides are compared by: steps/s, or the median time from the call until the result. */
  readonly compares: 'rate' | 'latency';
  /** The least ratio to reach, Holdfast's to the other's, where the project has set itself one. */
  readonly targets: {
    readonly dbos?: number;
    readonly bareCheckpoint?: number;
    /** To a bare transaction that makes the same writes. At most 1.3 times the time is at least 1 / 1.3 of the rate. */
    readonly checkedTransaction?: number;
    /** The most that the median from enqueuing to the first line of the workflow may be, in milliseconds. */
    readonly startDelayMs?: number;
  };
}

const STEPS = { work: 'workflow', windows: 1, queue: null, compares: 'rate' } as const;
/** So many steps that start and end of the workflow are next to nothing: the other side has neither. */
const TRANSACTIONS = {
  work: 'transaction',
  steps: 50,
  windows: 1,
  queue: null,
  compares: 'rate',
  targets: { checkedTransaction: 0.77 },
} as const;
const DRAIN = { work: 'drain', steps: 1, concurrency: 1, windows: 1, compares: 'rate' } as const;
const LATENCY = { work: 'queued', steps: 1, concurrency: 1, windows: 1, compares: 'latency' } as const;

/** Short enough that the peer's latency is that of its work; it costs a hundred queries a second. */
const TUNED_MS = 10;
const NO_LIMIT = { concurrency: null, peerPollingMs: null } as const;
const LIMIT = { batch: 400, concurrency: 50, peerPollingMs: null } as const;

export const SCENARIOS: readonly Scenario[] = [
  { ...STEPS, name: 'steps10-c1', steps: 10, concurrency: 1, targets: { dbos: 2.5, bareCheckpoint: 0.8 } },
  { ...STEPS, name: 'steps10-c50', steps: 10, concurrency: 50, targets: { dbos: 15 } },
  { ...STEPS, name: 'steps10-c500', steps: 10, concurrency: 500, windows: 2, targets: { dbos: 30 } },
  { ...STEPS, name: 'steps1-c50', steps: 1, concurrency: 50, targets: {} },
  { ...TRANSACTIONS, name: 'transaction-c1', concurrency: 1 },
  { ...TRANSACTIONS, name: 'transaction-c50', concurrency: 50 },
  { ...DRAIN, name: 'queue-drain', queue: { ...NO_LIMIT, batch: 2_000 }, targets: { dbos: 20 } },
  { ...DRAIN, name: 'queue-drain-tuned', queue: { ...NO_LIMIT, batch: 2_000, peerPollingMs: TUNED_MS }, targets: {} },
  { ...DRAIN, name: 'queue-limit50', queue: LIMIT, targets: { dbos: 20 } },
  { ...DRAIN, name: 'queue-limit50-tuned', queue: { ...LIMIT, peerPollingMs: TUNED_MS }, targets: {} },
  { ...LATENCY, name: 'queue-latency', queue: { ...NO_LIMIT, batch: 1 }, targets: { dbos: 20, startDelayMs: 20 } },
  {
    ...LATENCY,
    name: 'queue-latency-remote',
    work: 'queued-remotely',
    queue: { ...NO_LIMIT, batch: 1 },
    targets: { dbos: 20, startDelayMs: 20 },
  },
  {
    ...LATENCY,
    name: 'queue-latency-tuned',
    queue: { ...NO_LIMIT, batch: 1, peerPollingMs: TUNED_MS },
    targets: { startDelayMs: 20 },
  },
];
