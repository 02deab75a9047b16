import { createHash } from 'node:crypto';
import {
  NonRetryableError,
  RetryableError,
  StepRetriesExhaustedError,
  StepTimeoutError,
} from '../errors/step-errors.js';
import type { RetryPolicy, StepDefinition } from './definitions.js';
import type { RunningAttempt } from './running-attempt.js';
import { startTimer } from './timer.js';

/** What a step came to, with what the record keeps about the way there. */
export type StepEnd =
  | {
      readonly kind: 'value';
      readonly value: unknown;
      readonly attempts: number;
      readonly failures: readonly unknown[];
    }
  | {
      readonly kind: 'error';
      readonly error: unknown;
      readonly attempts: number;
      readonly failures: readonly unknown[];
    };

/** What the attempts need of the execution around them. */
export interface AttemptHost {
  readonly workflowId: string;
  /** Calls back when the execution may no longer write; returns how to take that back. */
  onGone(callback: (reason: Error) => void): () => void;
  readonly isRunning: boolean;
  /** @throws OwnershipLostError unless this execution may start another body. */
  mayRunBody(): Promise<void> | undefined;
  runBody(attempt: RunningAttempt): unknown;
}

/** Runs a step's body until it succeeds, its policy says stop, or the execution may no longer write. */
export async function runAttempts(definition: StepDefinition, seq: number, host: AttemptHost): Promise<StepEnd> {
  const { retries, timeoutMs } = definition;
  const failures: unknown[] = [];
  for (let attempt = 1; ; attempt++) {
    const permission = host.mayRunBody();
    if (permission !== undefined) await permission;
    const context = new AttemptContext(definition.name, seq, attempt, host);
    let error: unknown;
    try {
      const value = await (timeoutMs === null
        ? host.runBody(context)
        : withTimeout(host.runBody(context), timeoutMs, context, definition.name));
      return { kind: 'value', value, attempts: attempt, failures };
    } catch (thrown) {
      error = thrown;
    } finally {
      context.end();
    }
    const last = attempt >= retries.maxAttempts;
    if (last || !host.isRunning || error instanceof NonRetryableError || !worthRetrying(retries, error, attempt)) {
      return { kind: 'error', error: finalError(definition, error, failures, last), attempts: attempt, failures };
    }
    failures.push(error);
    await wait(retryDelayMs(retries, error, attempt), host);
  }
}

function worthRetrying(retries: RetryPolicy, error: unknown, attempt: number): boolean {
  try {
    return retries.shouldRetry?.(error, attempt) ?? true;
  } catch {
    // A predicate that fails has not asked for another attempt; the step's own error is the one to report.
    return false;
  }
}

function finalError(definition: StepDefinition, error: unknown, failures: readonly unknown[], last: boolean): unknown {
  if (!last || definition.retries.maxAttempts === 1) return error;
  const attempts = String(failures.length + 1);
  return new StepRetriesExhaustedError(
    `Step "${definition.name}" failed ${attempts} times; "errors" holds the error of each attempt.`,
    [...failures, error],
    { cause: error },
  );
}

/** How long to wait after failed attempt number `attempt`. */
export function retryDelayMs(retries: RetryPolicy, error: unknown, attempt: number, random = Math.random): number {
  if (error instanceof RetryableError && error.afterMs !== undefined) return error.afterMs;
  const factor = retries.exponential ? 2 ** Math.min(attempt - 1, 52) : 1;
  const delay = Math.min(retries.maxDelayMs, retries.initialDelayMs * factor);
  return retries.jitter ? delay / 2 + random() * (delay / 2) : delay;
}

/** The body's promise keeps running after the time is up; whatever it still brings is discarded. */
function withTimeout(running: unknown, timeoutMs: number, context: AttemptContext, name: string): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const cancel = startTimer(timeoutMs, () => {
      const error = new StepTimeoutError(
        `An attempt of step "${name}" took longer than ${String(timeoutMs)} ms. Its signal has fired; its result is discarded.`,
      );
      context.abort(error);
      reject(error);
    });
    Promise.resolve(running).then(resolve, reject).finally(cancel);
  });
}

function wait(ms: number, host: AttemptHost): Promise<void> {
  return new Promise((resolve) => {
    const cancel = startTimer(ms, () => {
      forget();
      resolve();
    });
    const forget = host.onGone(() => {
      cancel();
      resolve();
    });
  });
}

/** One attempt. Its signal and key are made when somebody asks: most bodies use neither. */
class AttemptContext implements RunningAttempt {
  readonly #host: AttemptHost;
  #controller: AbortController | undefined;
  #key: string | undefined;
  #forget: (() => void) | undefined;
  #isOver = false;
  #oncePlaces: Map<string, number> | undefined;

  constructor(
    readonly name: string,
    readonly seq: number,
    readonly attempt: number,
    host: AttemptHost,
  ) {
    this.#host = host;
  }

  get workflowId(): string {
    return this.#host.workflowId;
  }

  get idempotencyKey(): string {
    return (this.#key ??= idempotencyKey(this.workflowId, this.seq, this.name));
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      const controller = new AbortController();
      this.#controller = controller;
      this.#forget = this.#host.onGone((reason) => {
        controller.abort(reason);
      });
    }
    return this.#controller.signal;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  nextOncePlace(stream: string): number {
    this.#oncePlaces ??= new Map();
    const place = this.#oncePlaces.get(stream) ?? 0;
    this.#oncePlaces.set(stream, place + 1);
    return place;
  }

  end(): void {
    this.#isOver = true;
    this.#forget?.();
  }

  abort(reason: unknown): void {
    this.#controller ??= new AbortController();
    this.#controller.abort(reason);
  }
}

/** A UUID of version 8 (RFC 9562) made from a hash of what names the step. */
export function idempotencyKey(workflowId: string, seq: number, name: string): string {
  const hash = createHash('sha256')
    .update(JSON.stringify([workflowId, seq, name]))
    .digest();
  hash.writeUInt8((hash.readUInt8(6) & 0x0f) | 0x80, 6);
  hash.writeUInt8((hash.readUInt8(8) & 0x3f) | 0x80, 8);
  const hex = hash.toString('hex', 0, 16);
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}
