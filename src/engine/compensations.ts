import { HistoryLimitError } from '../errors/workflow-errors.js';
import type { Runtime } from '../runtime/runtime.js';
import type { RecordedStep } from '../store/store.js';
import type { CompensationBody } from './compensation-body.js';
import type { StepDefinition } from './definitions.js';
import { HISTORY_LIMIT } from './history-limit.js';
import { uuidOf } from './attempt-context.js';
import { isDoubtful } from './doubtful.js';

/** Functions that one run of a workflow can register for its rollback. */
const MOST_FUNCTIONS = HISTORY_LIMIT;

/** Something that a workflow has done, and what undoes it. */
export type Compensation =
  | {
      readonly kind: 'step';
      /** The step's. */
      readonly seq: number;
      readonly name: string;
      readonly definition: StepDefinition;
      readonly self: unknown;
      readonly args: readonly unknown[];
    }
  | {
      readonly kind: 'function';
      /** The number of the call before which it was registered. */
      readonly seq: number;
      readonly name: string;
      /** Counts those of one name and number, from 0. */
      readonly place: number;
      readonly body: CompensationBody;
    };

/** How long steps that are under way when their workflow fails have to end, before they are taken for unknown. Milliseconds. */
export const IN_FLIGHT_MS = 10_000;

/**
 * What an execution knows of what it would have to undo: the compensable steps that it has called, and the functions that its code has
 * registered. Built anew by every replay; in the order in which the code came to know of them, which is that of the record.
 */
export class Compensations {
  readonly #done: Compensation[] = [];
  /** Called, and no result known. */
  readonly #open = new Map<number, Compensation>();
  /** Numbers of those that this execution runs, or is about to. */
  readonly #underWay = new Set<number>();
  readonly #onSettled = new Set<() => void>();
  #functions = 0;
  /** How many functions of one name are registered before the call of one number: the last number alone, since they come in order. */
  readonly #places = new Map<string, number>();
  #placesSeq = -1;

  /** Whether there is, or may be, something to undo. */
  get areNeeded(): boolean {
    return this.#done.length + this.#open.size > 0;
  }

  /** In the order in which they are to run: the last first, and before all others the steps of which no end is known. */
  get inReverse(): readonly Compensation[] {
    const open = [...this.#open.values()].sort((one, other) => one.seq - other.seq);
    return [...this.#done, ...open].reverse();
  }

  /**
   * Keeps account of a compensable step while `work` runs it, or replays what is recorded of it. One that has begun, and whose end is
   * not seen by this execution, stays open. One that failed has reported that it did not happen, unless its error says that it may have.
   */
  async track<Result>(
    compensation: Extract<Compensation, { readonly kind: 'step' }>,
    { recorded, mayHaveBegun }: { readonly recorded: RecordedStep | undefined; readonly mayHaveBegun: boolean },
    execution: { readonly isRunning: boolean },
    work: (begins: () => void) => Promise<Result>,
  ): Promise<Result> {
    const { seq } = compensation;
    const begins = (): void => {
      this.#open.set(seq, compensation);
      this.#underWay.add(seq);
    };
    if (mayHaveBegun) this.#open.set(seq, compensation);
    try {
      const result = await work(begins);
      this.#close(seq, compensation);
      return result;
    } catch (error) {
      // A result that cannot be decoded is one all the same.
      const isDone = (recorded !== undefined && recorded.output !== null) || isDoubtful(error);
      if (execution.isRunning) this.#close(seq, isDone ? compensation : undefined);
      throw error;
    }
  }

  /** @throws HistoryLimitError */
  add(body: CompensationBody, seq: number): void {
    if (this.#functions >= MOST_FUNCTIONS) {
      throw new HistoryLimitError(
        `One run of a workflow can register ${String(MOST_FUNCTIONS)} functions for its rollback.`,
      );
    }
    this.#functions += 1;
    const { name } = body;
    if (seq !== this.#placesSeq) this.#places.clear();
    this.#placesSeq = seq;
    const place = this.#places.get(name) ?? 0;
    this.#places.set(name, place + 1);
    this.#done.push({ kind: 'function', seq, name, place, body });
  }

  /** Resolves when no step is under way any more; after `ms` at the latest, or when the execution is over. */
  settled(
    ms: number,
    execution: { readonly runtime: Runtime; onGone(callback: () => void): () => void },
  ): Promise<void> {
    if (this.#underWay.size === 0) return Promise.resolve();
    return new Promise((resolve) => {
      const settle = (): void => {
        this.#onSettled.delete(settle);
        cancel();
        forget();
        resolve();
      };
      const cancel = execution.runtime.startTimer(ms, settle);
      const forget = execution.onGone(settle);
      this.#onSettled.add(settle);
    });
  }

  #close(seq: number, done: Compensation | undefined): void {
    this.#open.delete(seq);
    this.#underWay.delete(seq);
    if (done !== undefined) this.#done.push(done);
    if (this.#underWay.size > 0) return;
    for (const callback of this.#onSettled) callback();
    this.#onSettled.clear();
  }
}

/**
 * The idempotency key of a compensation: made of what it undoes, not of its own number, so that it is the same when a workflow is
 * rewound, fails again and is rolled back once more.
 */
export function compensationKey(workflowId: string, compensation: Compensation): string {
  const { kind, seq, name } = compensation;
  return uuidOf(['compensation', workflowId, seq, name, kind === 'function' ? compensation.place : null]);
}
