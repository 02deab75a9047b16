import { HoldfastClosedError } from '../errors/usage-errors.js';
import type { Runtime } from '../runtime/runtime.js';
import type { FoundOutcome, WorkflowStore } from '../store/store.js';
import type { Outcome } from './outcome.js';
import { notFound } from './not-found.js';
import { runOutsideScope } from './scope.js';
import { Unheard } from './unheard.js';

interface Waiting {
  /** How many questions had been sent when it began to wait. Their answers may be older than it: of before a resume. */
  readonly since: number;
  /** When it began, by the monotonic clock. */
  readonly beganAt: number;
  readonly resolve: (outcome: Outcome) => void;
  readonly reject: (cause: unknown) => void;
}

/** Tells a waiter that it is no longer interested; returns how to take that back. */
type OnGone = (callback: (reason: Error) => void) => () => void;

/**
 * Before so many milliseconds have passed, no outcome can have been recorded, and taken back by another transaction whose caller knows
 * of it. It spares those a query who wait for a workflow that ends at once.
 */
const SOONEST_REWIND_MS = 1;

/** IDs asked about in one query. */
const MAX_IDS_PER_QUERY = 10_000;

/**
 * Everyone in this process who waits for an outcome. Outcomes of executions here are handed over directly; others are
 * learnt from hints and, since hints get lost, from one query a poll for all that wait.
 */
export class OutcomeWaiter {
  readonly #store: Pick<WorkflowStore, 'readOutcomes'>;
  readonly #pollMs: number;
  readonly #runtime: Runtime;
  readonly #waiting = new Map<string, Waiting[]>();
  readonly #toCheck = new Set<string>();
  readonly #unheard: Unheard;
  #checkScheduled = false;
  #cancelPoll: (() => void) | undefined;
  #closed = false;
  /** Questions that were sent. */
  #asked = 0;

  constructor(store: Pick<WorkflowStore, 'readOutcomes'>, pollMs: number, runtime: Runtime) {
    this.#runtime = runtime;
    this.#store = store;
    this.#pollMs = pollMs;
    this.#unheard = new Unheard(runtime, pollMs);
  }

  /** This process is about to enqueue it. What is heard of its outcome from now on is heard here. */
  willEnqueue(workflowId: string): void {
    this.#unheard.add(workflowId);
  }

  /** It has not been enqueued: there was one already, of which nothing is known here. */
  notEnqueued(workflowId: string): void {
    this.#unheard.heardOf([workflowId]);
  }

  /**
   * Waits for the outcome. `runsHere` says that an execution of this process will hand it over, so that nothing needs to
   * be asked before the next poll.
   */
  wait(workflowId: string, options: { readonly runsHere: boolean; readonly onGone?: OnGone }): Promise<Outcome> {
    return new Promise<Outcome>((resolve, reject) => {
      if (this.#closed) {
        reject(new HoldfastClosedError('This Holdfast is closed: ask another one for the result.'));
        return;
      }
      const subscription: { forget?: (() => void) | undefined } = {};
      const waiting: Waiting = {
        since: this.#asked,
        beganAt: this.#runtime.now(),
        resolve: (outcome) => {
          subscription.forget?.();
          resolve(outcome);
        },
        reject: (cause) => {
          subscription.forget?.();
          reject(asError(cause));
        },
      };
      const others = this.#waiting.get(workflowId);
      if (others === undefined) this.#waiting.set(workflowId, [waiting]);
      else others.push(waiting);
      subscription.forget = options.onGone?.((reason) => {
        this.#forget(workflowId, waiting);
        reject(reason);
      });
      if (!options.runsHere && !this.#unheard.has(workflowId)) this.check([workflowId]);
      this.#cancelPoll ??= runOutsideScope(() => this.#pollLater());
    });
  }

  /**
   * An execution of this process recorded it, by a write that was sent then. Who began to wait after that is not told, but looks: the answer
   * may have been on its way for so long that a person has rewound the workflow since.
   */
  settle(workflowId: string, outcome: Outcome, sentAt: number): void {
    this.#unheard.heardOf([workflowId]);
    const told = (this.#waiting.get(workflowId) ?? []).filter(({ beganAt }) => beganAt <= sentAt + SOONEST_REWIND_MS);
    for (const waiting of told) this.#forget(workflowId, waiting);
    for (const { resolve } of told) resolve(outcome);
    if (this.#waiting.has(workflowId)) this.check([workflowId]);
  }

  /** Somebody hints that these have outcomes; null: that any may have. */
  check(workflowIds: Iterable<string> | null): void {
    this.#unheard.heardOf(workflowIds);
    for (const workflowId of workflowIds ?? this.#waiting.keys()) {
      if (this.#waiting.has(workflowId)) this.#toCheck.add(workflowId);
    }
    if (this.#toCheck.size === 0 || this.#checkScheduled) return;
    this.#checkScheduled = true;
    runOutsideScope(() =>
      this.#runtime.nextTurn(() => {
        this.#checkScheduled = false;
        const asked = [...this.#toCheck];
        this.#toCheck.clear();
        void this.#ask(asked);
      }),
    );
  }

  close(): void {
    this.#closed = true;
    this.#cancelPoll?.();
    this.#unheard.clear();
    const error = new HoldfastClosedError(
      'This Holdfast was closed before the workflow ended. The workflow goes on elsewhere; ask another one for its result.',
    );
    for (const set of this.#waiting.values()) {
      for (const { reject } of set) reject(error);
    }
    this.#waiting.clear();
  }

  async #poll(): Promise<void> {
    await this.#ask([...this.#waiting.keys()]);
    this.#cancelPoll = this.#waiting.size > 0 && !this.#closed ? this.#pollLater() : undefined;
  }

  #pollLater(): () => void {
    return this.#runtime.startTimer(this.#pollMs, () => void this.#poll());
  }

  async #ask(workflowIds: readonly string[]): Promise<void> {
    for (let from = 0; from < workflowIds.length; from += MAX_IDS_PER_QUERY) {
      let found: readonly FoundOutcome[];
      const question = ++this.#asked;
      try {
        found = await this.#store.readOutcomes(workflowIds.slice(from, from + MAX_IDS_PER_QUERY));
      } catch (error) {
        // Closed, or refused as such: the first ends every wait anyway, the second concerns all who wait.
        if (!this.#closed)
          for (const workflowId of workflowIds)
            this.#answer(workflowId, question, ({ reject }) => {
              reject(error);
            });
        return;
      }
      for (const outcome of found) {
        const { workflowId } = outcome;
        this.#answer(workflowId, question, ({ resolve, reject }) => {
          if (outcome.kind === 'outcome') resolve(outcome);
          else reject(notFound(workflowId));
        });
      }
    }
  }

  /** Tells those who waited when the question was sent. */
  #answer(workflowId: string, question: number, tell: (waiting: Waiting) => void): void {
    const answered = (this.#waiting.get(workflowId) ?? []).filter(({ since }) => since < question);
    for (const waiting of answered) this.#forget(workflowId, waiting);
    answered.forEach(tell);
  }

  #forget(workflowId: string, waiting: Waiting): void {
    const others = this.#waiting.get(workflowId)?.filter((other) => other !== waiting) ?? [];
    if (others.length === 0) this.#waiting.delete(workflowId);
    else this.#waiting.set(workflowId, others);
  }
}

function asError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error('The wait was aborted.', { cause: reason });
}
