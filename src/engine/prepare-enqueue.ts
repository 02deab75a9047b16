import type { Debounce, Deduplication, EnqueueItemOptions, EnqueueOptions, Singleton } from '../api/queue.js';
import type { StartOptions } from '../api/workflow-options.js';
import { InvalidArgumentError } from '../errors/admin-errors.js';
import { WorkflowCancelledError } from '../errors/workflow-errors.js';
import type { EnqueueRequest, WorkflowStart } from '../store/store.js';
import { checkText } from './check-text.js';
import { wholeNumber } from './whole-number.js';
import { parseDuration } from './duration.js';
import { checkKnownOptions } from './known-options.js';
import type { Serializer } from './serializer.js';
import { whenHere, type Soon } from './soon.js';

const LONGEST_QUEUE_NAME_BYTES = 255;
const LONGEST_KEY_BYTES = 512;
const LARGEST_PRIORITY = 2 ** 31 - 1;

const PLACE_OPTIONS: ReadonlySet<string> = new Set<Exclude<keyof EnqueueOptions, keyof StartOptions>>([
  'queue',
  'priority',
  'key',
  'delay',
  'deduplication',
  'singleton',
  'debounce',
  'transaction',
]);
const NO_OPTIONS: StartOptions = Object.freeze({});
const DEDUPLICATION_OPTIONS: ReadonlySet<string> = new Set<keyof Deduplication>(['id', 'window', 'onConflict']);
const SINGLETON_OPTIONS: ReadonlySet<string> = new Set<keyof Singleton>(['key', 'onConflict']);
const DEBOUNCE_OPTIONS: ReadonlySet<string> = new Set<keyof Debounce>(['key', 'delay', 'maxWait']);

/** What is left for the start, where an option that does not exist is found. */
export function startOptionsOf(options: EnqueueOptions): StartOptions {
  const left = Object.entries(options).filter(([name]) => !PLACE_OPTIONS.has(name));
  return left.length === 0 ? NO_OPTIONS : Object.fromEntries(left);
}

/**
 * Adds to a checked start what its place in a queue is to be. Nothing has been written when this throws.
 * @throws InvalidArgumentError
 */
export function prepareEnqueue(
  start: WorkflowStart,
  queue: string | undefined,
  options: EnqueueItemOptions,
  serializer: Serializer,
): Soon<EnqueueRequest> {
  const { priority, key, delay, deduplication, singleton, debounce } = options;
  const given = Number(deduplication !== undefined) + Number(singleton !== undefined) + Number(debounce !== undefined);
  if (given > 1 || (debounce !== undefined && delay !== undefined)) {
    throw new InvalidArgumentError(
      'Of deduplication, singleton and debounce, one can be given; and debounce brings its own delay.',
    );
  }
  if (queue === undefined && (priority !== undefined || key !== undefined)) {
    throw new InvalidArgumentError(
      'priority and key mean something in a queue only: name one with the option "queue".',
    );
  }
  const place = {
    queue: queue === undefined ? null : checkQueueName(queue),
    priority: priority === undefined ? 0 : wholeNumber(priority, -LARGEST_PRIORITY, LARGEST_PRIORITY, 'priority'),
    key: key === undefined ? null : checkText(key, LONGEST_KEY_BYTES, 'key'),
  };
  const delayMs = delay === undefined ? 0 : parseDuration(delay, 'delay');
  const pushedBack = debounce === undefined ? undefined : checkDebounce(debounce);
  const held =
    deduplication !== undefined
      ? checkDeduplication(deduplication)
      : singleton !== undefined
        ? checkSingleton(singleton, serializer)
        : null;
  return whenHere(held, (holds: EnqueueRequest['deduplication']) => ({
    // One by one: spread, it takes several times as long.
    workflowId: start.workflowId,
    name: start.name,
    instance: start.instance,
    input: start.input,
    maxAttempts: start.maxAttempts,
    timeoutMs: start.timeoutMs,
    attributes: start.attributes,
    queue: place.queue,
    priority: place.priority,
    key: place.key,
    delayMs: pushedBack?.delayMs ?? delayMs,
    deduplication: holds,
    debounce: pushedBack?.debounce ?? null,
  }));
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
    cancelledError: null,
  };
}

async function checkSingleton(
  singleton: Singleton,
  serializer: Serializer,
): Promise<NonNullable<EnqueueRequest['deduplication']>> {
  checkKnownOptions(singleton, SINGLETON_OPTIONS, 'singleton');
  const { key, onConflict } = singleton;
  if ((onConflict as unknown) !== 'skip' && (onConflict as unknown) !== 'cancel-older') {
    throw new InvalidArgumentError("singleton.onConflict must be 'skip' or 'cancel-older'.");
  }
  const id = checkText(key, LONGEST_KEY_BYTES, 'singleton.key');
  if (onConflict === 'skip') return { id, windowMs: null, onConflict: 'attach', cancelledError: null };
  const error = new WorkflowCancelledError(
    'The workflow was cancelled: a newer one of its singleton key takes its place.',
  );
  // Where it was made says nothing about where it happened.
  error.stack = `${error.name}: ${error.message}`;
  return { id, windowMs: null, onConflict, cancelledError: await serializer.encodeError(error) };
}

function checkDebounce(debounce: Debounce): Pick<EnqueueRequest, 'delayMs' | 'debounce'> {
  checkKnownOptions(debounce, DEBOUNCE_OPTIONS, 'debounce');
  const { key, delay, maxWait } = debounce;
  const delayMs = parseDuration(delay, 'debounce.delay');
  const maxWaitMs = maxWait === undefined ? null : parseDuration(maxWait, 'debounce.maxWait');
  if (delayMs < 1 || (maxWaitMs !== null && maxWaitMs < 1)) {
    throw new InvalidArgumentError('debounce.delay and debounce.maxWait must be at least 1 ms.');
  }
  return { delayMs, debounce: { key: checkText(key, LONGEST_KEY_BYTES, 'debounce.key'), maxWaitMs } };
}
