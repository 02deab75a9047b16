import { setTimeout as delay } from 'node:timers/promises';

import type { LoadOrder, LoadResult } from './protocol.js';
import { latencyOf } from './statistics.js';

/** Counts steps. The workflow function adds to it after a step's result is durable and back, not when the body runs. */
export interface StepMeter {
  steps: number;
  /** From the call that enqueues a workflow until its code runs, in milliseconds. */
  readonly startDelaysMs: number[];
}

/** What is measured, seen from the loop. */
export interface Subject {
  readonly meter: StepMeter;
  /** Sets up what the order needs, and returns how to take that back. */
  prepare?(order: LoadOrder): Promise<() => Promise<void>>;
  /** Does one piece of work, and returns when its result is here. */
  perform(order: LoadOrder): Promise<unknown>;
}

/** Called at both ends of the measured window, with the load going on. */
export interface WindowObserver {
  opened(): void;
  closed(): void;
}

/**
 * A closed loop: `concurrency` workers, each doing one piece of work after another without a pause.
 *
 * The load goes on without a break from the warm-up through the window, so neither the ramp-up nor the drain is measured.
 * Steps are counted rather than workflows times steps: with 500 workflows started at once the ends come in waves, and a
 * window would hold one wave more or less by chance.
 */
export async function runClosedLoop(subject: Subject, order: LoadOrder, observer: WindowObserver): Promise<LoadResult> {
  const latencies: number[] = [];
  let measuring = false;
  let stopping = false;

  const worker = async (): Promise<void> => {
    while (!stopping) {
      const startedAt = performance.now();
      await subject.perform(order);
      if (measuring) latencies.push(performance.now() - startedAt);
    }
  };
  const workers = Array.from({ length: order.concurrency }, worker);
  // A worker that fails ends the run at once: what the others would go on to measure is not the scenario.
  const failure = Promise.race(workers).then(() =>
    Promise.reject(new Error('A worker ended before the window closed.')),
  );
  failure.catch(() => undefined);

  await Promise.race([delay(order.warmUpMs), failure]);
  measuring = true;
  subject.meter.startDelaysMs.length = 0;
  const cpuAtOpening = process.cpuUsage();
  const stepsAtOpening = subject.meter.steps;
  const openedAt = performance.now();
  observer.opened();

  await Promise.race([delay(order.measureMs), failure]);
  const elapsedMs = performance.now() - openedAt;
  const cpu = process.cpuUsage(cpuAtOpening);
  const steps = subject.meter.steps - stepsAtOpening;
  const startDelayMs = latencyOf(subject.meter.startDelaysMs);
  measuring = false;
  observer.closed();

  stopping = true;
  await Promise.all(workers);
  return {
    elapsedMs,
    steps,
    workflows: latencies.length,
    latencyMs: latencyOf(latencies),
    startDelayMs,
    cpuMs: (cpu.user + cpu.system) / 1000,
  };
}
