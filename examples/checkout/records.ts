import type { Holdfast } from '../../src/index.js';
import { StoryError } from './story-error.js';

const POLL_MS = 20;
const LONGEST_WAIT_MS = 30_000;

/** What the story wants to know of a step on record. */
export interface RecordedStep {
  readonly seq: number;
  readonly name: string;
  readonly kind: string;
  /** The ownership that recorded its result. */
  readonly epoch: number;
  readonly output: unknown;
}

/** All steps whose results are on record. */
export async function recordedSteps(holdfast: Holdfast, orderId: string): Promise<readonly RecordedStep[]> {
  const { items } = await holdfast.admin.steps(orderId, { payload: true });
  return items
    .filter(({ complete }) => complete)
    .map(({ seq, name, kind, epoch, output }) => ({
      seq,
      name,
      kind,
      epoch,
      output: output?.readable === true ? output.value : undefined,
    }));
}

/** Whether it sleeps, or has slept already. */
export async function hasBegunToSleep(holdfast: Holdfast, orderId: string): Promise<boolean> {
  const { items } = await holdfast.admin.steps(orderId);
  return items.some(({ kind }) => kind === 'sleep');
}

/** Waits until the condition holds. @throws StoryError with `what` when it does not in time. */
export async function waitUntil(condition: () => Promise<boolean>, what: string): Promise<void> {
  const deadline = performance.now() + LONGEST_WAIT_MS;
  while (!(await condition())) {
    if (performance.now() > deadline)
      throw new StoryError(`Waited ${String(LONGEST_WAIT_MS)} ms in vain until ${what}.`);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}
