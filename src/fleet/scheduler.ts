import type { Logger } from '../api/logger.js';
import { codeOf } from '../errors/error-code.js';
import type { Runtime } from '../runtime/runtime.js';
import type { DueSchedule, ScheduleStore } from '../store/schedule-store.js';
import { planFiring } from './firing-plan.js';
import { Repeater } from './repeater.js';
import { Ticks } from './ticks.js';

/** Schedules that are looked at together. Also the most statements under way at once. */
const LOOKED_AT = 8;
/** The whole fleet waits for one tick; they do not all come at once. */
const JITTER_MS = 10;

export interface SchedulerOptions {
  readonly runtime: Runtime;
  readonly store: Pick<ScheduleStore, 'due' | 'fire'>;
  readonly logger: Logger;
  /** Longest wait between two looks, in milliseconds: hints that a schedule was changed get lost. */
  readonly pollMs: number;
  /** The encoded error of runs that a later tick ends. */
  readonly cancelledError: string;
  /** Runs were enqueued. */
  readonly onFired: () => void;
}

/**
 * Fires what is due, and waits for the next tick. Every executor does, for all schedules: firing only enqueues, so the one that
 * fires need not know the workflow. Which of them gets to fire a tick, the database decides; a process that dies on the way
 * has fired, or has not.
 */
export class Scheduler {
  readonly #options: SchedulerOptions;
  readonly #repeater: Repeater;
  #dueInMs = Infinity;
  #isStopping = false;

  constructor(options: SchedulerOptions) {
    const { runtime, pollMs } = options;
    this.#options = options;
    this.#repeater = new Repeater(
      runtime,
      () => this.#fireAll(),
      () => Math.min(pollMs * (0.75 + runtime.random() / 2), Math.ceil(this.#dueInMs) + runtime.random() * JITTER_MS),
    );
  }

  start(): void {
    this.#repeater.start();
    this.#repeater.wake();
  }

  /** Schedules may have changed. */
  wake(): void {
    this.#repeater.wake();
  }

  stop(): Promise<void> {
    this.#isStopping = true;
    return this.#repeater.stop();
  }

  async #fireAll(): Promise<void> {
    // Those that nobody could fire just now are left alone until the next poll.
    const passed = new Set<string>();
    this.#dueInMs = Infinity;
    try {
      while (await this.#sweep(passed));
    } catch (error) {
      this.#dueInMs = Infinity;
      this.#options.logger.warn('The schedules could not be read.', { code: codeOf(error) });
    }
  }

  /** Fires each schedule that is due, one batch of ticks each. Whether any was, so that there may be more. */
  async #sweep(passed: Set<string>): Promise<boolean> {
    let hasFired = false;
    let after: DueSchedule | null = null;
    this.#dueInMs = Infinity;
    while (!this.#isStopping) {
      const found: readonly DueSchedule[] = await this.#options.store.due(after, LOOKED_AT);
      const due = found.filter(({ nextMs, nowMs }) => nextMs <= nowMs);
      const fired = await Promise.all(
        due.filter(({ name }) => !passed.has(name)).map((schedule) => this.#fire(schedule, passed)),
      );
      hasFired ||= fired.includes(true);
      const [ahead] = found.slice(due.length);
      if (ahead !== undefined) this.#dueInMs = ahead.nextMs - ahead.nowMs;
      if (found.length < LOOKED_AT || due.length < found.length) break;
      after = found.at(-1) ?? null;
    }
    return hasFired && !this.#isStopping;
  }

  /** One that fails must not keep the others from being fired. */
  async #fire(schedule: DueSchedule, passed: Set<string>): Promise<boolean> {
    const { store, logger, cancelledError, onFired } = this.#options;
    const { name, cron, timeZone, catchUp, nextMs, nowMs } = schedule;
    try {
      const { ticks, missed, next } = planFiring(new Ticks(cron, timeZone), nextMs, nowMs, catchUp);
      const answer = await store.fire({ schedule, ticks, missed, nextMs: next, cancelledError });
      if (answer.kind === 'fired') {
        if (answer.workflowIds.length > 0) onFired();
        return true;
      }
    } catch (error) {
      logger.warn('A schedule could not be fired; it is tried again.', { schedule: name, code: codeOf(error) });
    }
    passed.add(name);
    return false;
  }
}
