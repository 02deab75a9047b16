import { AsyncResource } from 'node:async_hooks';
import { createHash } from 'node:crypto';
import { StepTimeoutError } from '../errors/step-errors.js';
import type { Runtime } from '../runtime/runtime.js';
import type { EventToAdd } from '../store/event-to-add.js';
import { EventBuffer, NO_EVENTS } from './event-buffer.js';
import type { RunningAttempt } from './running-attempt.js';

/** What an attempt needs of the execution around it. */
export interface AttemptSurroundings {
  readonly workflowId: string;
  readonly runtime: Runtime;
  /** Calls back when the execution may no longer write; returns how to take that back. */
  onGone(callback: (reason: Error) => void): () => void;
  /** Where it is not made of the step's number and name. */
  readonly idempotencyKey?: string;
}

/** One attempt. Its signal and key are made when somebody asks: most bodies use neither. */
export class AttemptContext implements RunningAttempt {
  readonly #surroundings: AttemptSurroundings;
  #controller: AbortController | undefined;
  /** Fires the signal. */
  #fire: ((reason: unknown) => void) | undefined;
  #key: string | undefined;
  #forget: (() => void) | undefined;
  #isOver = false;
  #oncePlaces: Map<string, number> | undefined;
  #events: EventBuffer | undefined;

  constructor(
    readonly name: string,
    readonly seq: number,
    readonly attempt: number,
    surroundings: AttemptSurroundings,
  ) {
    this.#surroundings = surroundings;
  }

  get workflowId(): string {
    return this.#surroundings.workflowId;
  }

  get idempotencyKey(): string {
    return (this.#key ??= this.#surroundings.idempotencyKey ?? idempotencyKey(this.workflowId, this.seq, this.name));
  }

  get signal(): AbortSignal {
    const controller = (this.#controller ??= new AbortController());
    // Where it was asked for last, so that what listens to it is in its step, whoever cancels the workflow: a transaction's
    // signal has been asked for before when its body runs once more.
    this.#fire = AsyncResource.bind((reason: unknown) => {
      controller.abort(reason);
    });
    this.#forget ??= this.#surroundings.onGone((reason) => {
      this.#abort(reason);
    });
    return controller.signal;
  }

  get events(): EventBuffer {
    return (this.#events ??= new EventBuffer());
  }

  /** What the body has added, once it has returned. */
  takeEvents(): Promise<readonly EventToAdd[]> | readonly EventToAdd[] {
    this.#isOver = true;
    return this.#events?.take() ?? NO_EVENTS;
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

  /** The promise keeps running after the time is up; whatever it still brings is discarded. */
  within(running: unknown, timeoutMs: number, what: string): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const cancel = this.#surroundings.runtime.startTimer(timeoutMs, () => {
        const error = new StepTimeoutError(
          `${what} of step "${this.name}" took longer than ${String(timeoutMs)} ms. Its signal has fired; its result is discarded.`,
        );
        this.#abort(error);
        reject(error);
      });
      Promise.resolve(running).then(resolve, reject).finally(cancel);
    });
  }

  end(): void {
    this.#isOver = true;
    this.#forget?.();
  }

  #abort(reason: unknown): void {
    if (this.#fire !== undefined) {
      this.#fire(reason);
      return;
    }
    this.#controller ??= new AbortController();
    this.#controller.abort(reason);
  }
}

/** The same for all attempts of a step, in whichever process. */
export function idempotencyKey(workflowId: string, seq: number, name: string): string {
  return uuidOf([workflowId, seq, name]);
}

/** A UUID of version 8 (RFC 9562) made from a hash of what names something. */
export function uuidOf(parts: readonly (string | number | null)[]): string {
  const hash = createHash('sha256').update(JSON.stringify(parts)).digest();
  hash.writeUInt8((hash.readUInt8(6) & 0x0f) | 0x80, 6);
  hash.writeUInt8((hash.readUInt8(8) & 0x3f) | 0x80, 8);
  const hex = hash.toString('hex', 0, 16);
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}
