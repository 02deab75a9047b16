import type { Deduplication, EnqueueItemOptions, EnqueueOptions } from '../api/queue.js';
import type { StartOptions } from '../api/workflow-options.js';
import { InvalidArgumentError } from '../errors/admin-errors.js';
import type { EnqueueRequest, WorkflowStart } from '../store/store.js';
import { checkText } from './check-text.js';
import { wholeNumber } from './definitions.js';
import { parseDuration } from './duration.js';
import { checkKnownOptions } from './known-options.js';

const LONGEST_QUEUE_NAME_BYTES = 255;
const LONGEST_KEY_BYTES = 512;
const LARGEST_PRIORITY = 2 ** 31 - 1;

const PLACE_OPTIONS: ReadonlySet<string> = new Set<Exclude<keyof EnqueueOptions, keyof StartOptions>>([
  'queue',
  'priority',
  'key',
  'delay',
  'deduplication',
  'transaction',
]);
const DEDUPLICATION_OPTIONS: ReadonlySet<string> = new Set<keyof Deduplication>(['id', 'window', 'onConflict']);

/** What is left for the start, where an option that does not exist is found. */
export function startOptionsOf(options: EnqueueOptions): StartOptions {
  return Object.fromEntries(Object.entries(options).filter(([name]) => !PLACE_OPTIONS.has(name)));
}

/**
 * Adds to a checked start what its place in a queue is to be. Nothing has been written when this throws.
 * @throws InvalidArgumentError
 */
export function prepareEnqueue(
  start: WorkflowStart,
  queue: string | undefined,
  options: EnqueueItemOptions,
): EnqueueRequest {
  const { priority, key, delay, deduplication } = options;
  if (queue === undefined && (priority !== undefined || key !== undefined)) {
    throw new InvalidArgumentError(
      'priority and key mean something in a queue only: name one with the option "queue".',
    );
  }
  return {
    ...start,
    queue: queue === undefined ? null : checkQueueName(queue),
    priority: priority === undefined ? 0 : wholeNumber(priority, -LARGEST_PRIORITY, LARGEST_PRIORITY, 'priority'),
    key: key === undefined ? null : checkText(key, LONGEST_KEY_BYTES, 'key'),
    delayMs: delay === undefined ? 0 : parseDuration(delay, 'delay'),
    deduplication: deduplication === undefined ? null : checkDeduplication(deduplication),
  };
}

/** @throws InvalidArgumentError */
export function checkQueueName(name: unknown): string {
  return checkText(name, LONGEST_QUEUE_NAME_BYTES, 'A queue name');
}

function checkDeduplication(
  deduplication: NonNullable<EnqueueItemOptions['deduplication']>,
): NonNullable<EnqueueRequest['deduplication']> {
  checkKnownOptions(deduplication, DEDUPLICATION_OPTIONS, 'deduplication');
  const { id, window, onConflict } = deduplication;
  if ((onConflict as unknown) !== 'reject' && (onConflict as unknown) !== 'attach') {
    throw new InvalidArgumentError("deduplication.onConflict must be 'reject' or 'attach'.");
  }
  return {
    id: checkText(id, LONGEST_KEY_BYTES, 'deduplication.id'),
    windowMs: window === undefined ? null : parseDuration(window, 'deduplication.window'),
    onConflict,
  };
}
