import { randomUUID } from 'node:crypto';
import type { Clock } from './clock.js';
import { HintBoard, type Hint } from './hint-board.js';
import type {
  AuditRow,
  DebounceRow,
  DeduplicationRow,
  ExecutorRow,
  OutboxRow,
  QueueRow,
  QueueStartRow,
  Workflow,
} from './tables.js';

/**
 * What a PostgreSQL database is to the other store: the record, its clock, and the hints that its transactions send. Any number
 * of stores, each as of one process, can be opened on it.
 *
 * A transaction is a function that runs without a pause, so it is atomic and alone; the modules of this folder are those of
 * sql/functions, each checking everything before it writes anything.
 */
export class MemoryDatabase {
  readonly workflows = new Map<string, Workflow>();
  /** By workflow ID, the oldest act first; stays when the workflow is deleted. */
  readonly audit = new Map<string, AuditRow[]>();
  readonly executors: ExecutorRow[] = [];
  readonly queues = new Map<string, QueueRow>();
  queueStarts: QueueStartRow[] = [];
  readonly deduplications = new Map<string, DeduplicationRow>();
  readonly debounces = new Map<string, DebounceRow>();
  /** In the order of adding. */
  outbox: OutboxRow[] = [];
  /** Workflows that have to be looked at again. */
  readonly wakeUps = new Set<string>();
  /** Which suspended workflow waits for an outcome or an event of which other ones. */
  readonly waits = new Map<string, ReadonlySet<string>>();
  readonly clock: Clock;
  /** Makes the tokens of claims. */
  readonly newToken: () => string;
  readonly #board = new HintBoard();

  constructor(options: { readonly clock: Clock; readonly newToken?: () => string }) {
    this.clock = options.clock;
    this.newToken = options.newToken ?? randomUUID;
  }

  /** The one clock: everything that is stored or compared as a time comes from here. */
  now(): number {
    return this.clock.now();
  }

  notify(hint: Hint): void {
    this.#board.notify(hint);
  }

  /** Returns what ends it. */
  listen(listener: (hint: Hint) => void): () => void {
    return this.#board.listen(listener);
  }
}
