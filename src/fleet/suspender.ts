import type { Engine } from '../engine/engine.js';
import type { Runtime } from '../runtime/runtime.js';
import { Repeater } from './repeater.js';

/** How long an execution has to do nothing but wait before it is unloaded when executions wait for a slot, in milliseconds. */
export const SUSPEND_UNDER_PRESSURE_MS = 50;
/** The same at shutdown: what would only be waited for is left to another executor, in milliseconds. */
export const SUSPEND_AT_SHUTDOWN_MS = 1_000;
/** Bounds of the time between two looks at what runs here, in milliseconds. */
const SHORTEST_LOOK_MS = 10;
const LONGEST_LOOK_MS = 250;
/** Looks in the time after which an execution is unloaded. */
const LOOKS_PER_PERIOD = 4;

export interface SuspenderOptions {
  readonly runtime: Runtime;
  readonly engine: Pick<Engine, 'runningExecutions' | 'runningCount'>;
  /** How long an execution does nothing but wait before it is unloaded, in milliseconds. */
  readonly suspendAfterMs: number;
  /** Executions under way at which nothing more is claimed: from then on, waiting ones make room early. */
  readonly maxConcurrent: number;
}

/**
 * Unloads executions that do nothing but wait. One look at all of them now and then, instead of a timer for each wait: most
 * waits are over before.
 */
export class Suspender {
  readonly #options: SuspenderOptions;
  readonly #repeater: Repeater;
  #drainingUntil: number | undefined;

  constructor(options: SuspenderOptions) {
    this.#options = options;
    this.#repeater = new Repeater(
      options.runtime,
      () => this.#look(),
      () => Math.min(LONGEST_LOOK_MS, Math.max(SHORTEST_LOOK_MS, this.#thresholdMs / LOOKS_PER_PERIOD)),
    );
  }

  start(): void {
    this.#repeater.start();
  }

  /** This executor shuts down in so many milliseconds at the latest: what would wait beyond that is unloaded soon. */
  drain(withinMs: number): void {
    this.#drainingUntil = this.#options.runtime.now() + withinMs;
    this.#repeater.wake();
  }

  stop(): Promise<void> {
    return this.#repeater.stop();
  }

  get #thresholdMs(): number {
    const { engine, suspendAfterMs, maxConcurrent } = this.#options;
    if (this.#drainingUntil !== undefined) return Math.min(suspendAfterMs, SUSPEND_AT_SHUTDOWN_MS);
    return engine.runningCount < maxConcurrent ? suspendAfterMs : Math.min(suspendAfterMs, SUSPEND_UNDER_PRESSURE_MS);
  }

  /** Not waited for: a row that somebody keeps locked must not keep the others loaded. */
  #look(): Promise<void> {
    const sinceMs = this.#thresholdMs;
    const untilMs = this.#drainingUntil === undefined ? sinceMs : this.#drainingUntil - this.#options.runtime.now();
    for (const execution of this.#options.engine.runningExecutions()) {
      if (execution.isIdle(sinceMs, untilMs)) void execution.suspend();
    }
    return Promise.resolve();
  }
}
