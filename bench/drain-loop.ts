import type { Subject, WindowObserver } from './closed-loop.js';
import type { LoadOrder, LoadResult } from './protocol.js';

/**
 * Drains one after the other: many workflows are enqueued, and all have to end before the next ones are. Whole drains are
 * measured, so that filling and emptying, and the wait for the first look at the queue, count in their true proportion.
 */
export async function runDrains(subject: Subject, order: LoadOrder, observer: WindowObserver): Promise<LoadResult> {
  await repeatFor(order.warmUpMs, () => subject.perform(order));
  const cpuAtOpening = process.cpuUsage();
  const stepsAtOpening = subject.meter.steps;
  const openedAt = performance.now();
  observer.opened();
  await repeatFor(order.measureMs, () => subject.perform(order));
  const elapsedMs = performance.now() - openedAt;
  const cpu = process.cpuUsage(cpuAtOpening);
  const steps = subject.meter.steps - stepsAtOpening;
  observer.closed();
  return {
    elapsedMs,
    steps,
    workflows: steps / order.steps,
    latencyMs: null,
    startDelayMs: null,
    cpuMs: (cpu.user + cpu.system) / 1000,
  };
}

/** At least once. */
async function repeatFor(durationMs: number, perform: () => Promise<unknown>): Promise<void> {
  const until = performance.now() + durationMs;
  do await perform();
  while (performance.now() < until);
}
