import { PayloadCodecError } from '../errors/value-errors.js';
import type { Ownership, StepRecord } from '../store/store.js';
import type { EventToAdd } from '../store/event-to-add.js';
import type { OpenTransaction, TransactionJob } from '../store/transaction-store.js';
import { elapsedSince } from './elapsed.js';
import { EventBuffer, NO_EVENTS } from './event-buffer.js';
import * as why from './execution-errors.js';
import type { RunningExecution } from './execution-host.js';
import { encodeFailures } from './run-step.js';
import type { RunningAttempt } from './running-attempt.js';
import { runInScope } from './scope.js';
import type { Soon } from './soon.js';
import type { AttemptRun } from './step-attempts.js';
import type { TransactionDefinition, TransactionSettings } from './transaction-definition.js';

/** The call of a transaction that is attempted. */
export interface AttemptedCall {
  readonly execution: RunningExecution;
  readonly definition: TransactionDefinition;
  readonly seq: number;
  readonly self: unknown;
  readonly args: unknown[];
  readonly startedAt: number;
}

/** One attempt of a transaction: what the store runs, more than once after conflicts. */
export class TransactionAttempt implements TransactionJob {
  readonly #call: AttemptedCall;
  readonly #attempt: RunningAttempt;
  readonly #run: AttemptRun;
  /** How often the body was run. */
  #runs = 0;
  /** What the last run of the body has returned, and added to the outbox. */
  value: unknown;
  events = NO_EVENTS;
  /** Why the result of the body cannot be recorded. */
  unstorable: unknown;

  constructor(call: AttemptedCall, attempt: RunningAttempt, run: AttemptRun) {
    this.#call = call;
    this.#attempt = attempt;
    this.#run = run;
  }

  get ownership(): Ownership {
    return this.#call.execution.ownership;
  }

  get seq(): number {
    return this.#call.seq;
  }

  get name(): string {
    return this.#call.definition.name;
  }

  get modes(): TransactionSettings {
    return this.#call.definition.settings;
  }

  get idleTimeoutMs(): number | null {
    return this.modes.idleTimeoutMs;
  }

  get dataSource(): object | undefined {
    return this.modes.dataSource;
  }

  /** Made when it is asked for. */
  get signal(): AbortSignal {
    return this.#attempt.signal;
  }

  mayRun(): Promise<void> | undefined {
    return this.#call.execution.mayRunBody();
  }

  async body(open: OpenTransaction): Promise<StepRecord> {
    const run = ++this.#runs;
    const buffer = new EventBuffer();
    const value = await this.#callBody(open, buffer);
    const taken = buffer.take();
    const events = taken instanceof Promise ? await taken : taken;
    // One whose connection broke may return when the next run has begun: what goes on record then is not its own.
    if (run === this.#runs) {
      this.value = value;
      this.events = events;
    }
    const record = this.#record(run, value, events);
    return record instanceof Promise ? await record : record;
  }

  /** Ends when the time is up or the execution gone, whatever the user's code does: it must not commit any more then. */
  #callBody(open: OpenTransaction, events: EventBuffer): Promise<unknown> {
    const { execution, definition, self, args } = this.#call;
    const { body, settings } = definition;
    const transaction = { client: open.client, settings, events };
    const running = promiseOf(() =>
      runInScope({ execution, step: this.#attempt, transaction }, () => body.apply(self, args)),
    );
    // One promise for all that may end it: a race of several costs a promise and two callbacks for each.
    return new Promise((resolve, reject) => {
      let hasSettled = false;
      let isOver = false;
      let forget = (): void => undefined;
      const fail = (error: unknown): void => {
        if (isOver) return;
        isOver = true;
        open.takeBack?.();
        forget();
        // A body that has thrown has settled, or is about to.
        queueMicrotask(() => {
          if (!hasSettled) open.abandon(why.asError(error), running);
          reject(error);
        });
      };
      const succeed = (value: unknown): void => {
        if (isOver) return;
        isOver = true;
        open.takeBack?.();
        forget();
        resolve(value);
      };
      const limited = this.#run.limit(running);
      running.then(
        (value) => {
          hasSettled = true;
          if (limited === running) succeed(value);
        },
        (error: unknown) => {
          hasSettled = true;
          if (limited === running) fail(error);
        },
      );
      if (limited !== running) Promise.resolve(limited).then(succeed, fail);
      forget = execution.onGone(fail);
    });
  }

  #record(run: number, value: unknown, events: readonly EventToAdd[]): Soon<StepRecord> {
    const { execution, definition, seq, startedAt } = this.#call;
    const { failures } = this.#run;
    const recordWith = (output: string, attemptErrors: string | null): StepRecord => ({
      seq,
      name: definition.name,
      kind: 'transaction',
      output,
      error: null,
      attempts: this.#attempt.attempt,
      attemptErrors,
      childId: null,
      elapsedMs: elapsedSince(execution.runtime, startedAt),
      events,
    });
    let encoded: Soon<string>;
    try {
      encoded = execution.host.serializer.encode(value);
    } catch (error) {
      throw this.#unrecordable(run, error);
    }
    if (typeof encoded === 'string' && failures.length === 0) return recordWith(encoded, null);
    return Promise.all([encoded, encodeFailures(execution, failures)]).then(
      ([output, attemptErrors]) => recordWith(output, attemptErrors),
      (error: unknown) => {
        throw this.#unrecordable(run, error);
      },
    );
  }

  #unrecordable(run: number, error: unknown): unknown {
    // What becomes of a run that came too late is no matter.
    if (run !== this.#runs) return error;
    // It has had no effect yet: once the codec works, it is simply run again.
    if (error instanceof PayloadCodecError) this.#call.execution.blockUnrecordable(error);
    this.unstorable = error;
    return error;
  }
}

/** What the body returns or throws, whether it is asynchronous or not. */
function promiseOf(body: () => unknown): Promise<unknown> {
  try {
    const returned = body();
    return returned instanceof Promise ? returned : Promise.resolve(returned);
  } catch (error) {
    return Promise.reject(error);
  }
}
