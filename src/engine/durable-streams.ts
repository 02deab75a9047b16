import type { WriteStreamOptions } from '../api/stream.js';
import { StreamClosedError } from '../errors/stream-errors.js';
import { InsideTransactionError } from '../errors/transaction-errors.js';
import { OutsideWorkflowError } from '../errors/usage-errors.js';
import { WriteRefusedError } from '../errors/workflow-errors.js';
import type { StreamWrite } from '../store/stream-store.js';
import { checkText } from './check-text.js';
import { orRecordFailure } from './durable-calls.js';
import { elapsedSince } from './elapsed.js';
import type { RunningExecution } from './execution-host.js';
import { checkKnownOptions } from './known-options.js';
import type { RunningAttempt } from './running-attempt.js';
import { currentScope, requireDurable } from './scope.js';

/** Longest key of a stream, in bytes of UTF-8. */
const LONGEST_STREAM_KEY_BYTES = 512;

const WRITE_OPTIONS: ReadonlySet<string> = new Set<keyof WriteStreamOptions>(['oncePerStep']);

/**
 * Adds an entry to a stream of the running workflow, for readers in any process: `holdfast.readStream(workflowId, key)`. The
 * key's first entry makes the stream.
 *
 * In the workflow it is a durable call: the entry commits together with the record of the call, once. In the body of a step
 * the entry is visible as soon as this returns, before the step has a result; the next attempt of the step writes its own,
 * unless `oncePerStep`. Entries of one workflow are written in the order of the calls, also of calls that are not awaited.
 *
 * @throws StreamClosedError when the workflow has closed the stream.
 * @throws InvalidArgumentError, ValueNotSerializableError, PayloadTooLargeError, before anything is written.
 * @throws OutsideWorkflowError outside workflows, and by an attempt of a step that is over.
 */
export function writeStream(key: string, value: unknown, options: WriteStreamOptions = {}): Promise<void> {
  const scope = currentScope();
  if (scope === undefined) {
    return Promise.reject(new OutsideWorkflowError('writeStream works inside a workflow and in its steps only.'));
  }
  const { execution, step: attempt, transaction } = scope;
  if (transaction !== undefined) {
    return Promise.reject(
      new InsideTransactionError(
        'writeStream cannot be a part of a transaction: write from the workflow, or in a step.',
      ),
    );
  }
  return execution.call(async () => {
    checkKnownOptions(options, WRITE_OPTIONS, 'writeStream');
    const stream = checkStreamKey(key);
    await (attempt === undefined
      ? writeAsCall(execution, 'stream', stream, () => execution.host.serializer.encode(value))
      : writeInStep(execution, attempt, stream, value, options));
  });
}

/**
 * Closes a stream of the running workflow: readers come to an end, and nothing can be written to it any more. A durable call.
 * Closing a stream twice does no harm. Without it, readers come to an end when the workflow does.
 *
 * @throws InvalidArgumentError, OutsideWorkflowError
 */
export function closeStream(key: string): Promise<void> {
  const scope = currentScope();
  if (scope === undefined) return Promise.reject(new OutsideWorkflowError('closeStream works inside a workflow only.'));
  return scope.execution.call(async () => {
    await writeAsCall(requireDurable('closeStream'), 'stream-close', checkStreamKey(key), () => null);
  });
}

/** @throws InvalidArgumentError */
export function checkStreamKey(key: unknown): string {
  return checkText(key, LONGEST_STREAM_KEY_BYTES, 'The key of a stream');
}

async function writeAsCall(
  execution: RunningExecution,
  kind: 'stream' | 'stream-close',
  stream: string,
  encodeValue: () => string | null | Promise<string>,
): Promise<void> {
  const { seq, recorded } = execution.enter(kind, stream);
  if (recorded !== undefined) {
    await execution.replayed(recorded);
    return;
  }
  await execution.replayOver();
  const step = { seq, name: stream, kind, childId: null, startedAt: execution.runtime.now() } as const;
  await orRecordFailure(execution, step, () =>
    write(
      execution,
      encodeBoth(encodeValue, () => execution.host.serializer.encode(undefined)),
      (value, output) => ({
        stream,
        value,
        seq,
        by: { kind, output, elapsedMs: elapsedSince(execution.runtime, step.startedAt) },
      }),
    ),
  );
  await execution.progress();
}

async function writeInStep(
  execution: RunningExecution,
  attempt: RunningAttempt,
  stream: string,
  value: unknown,
  { oncePerStep = false }: WriteStreamOptions,
): Promise<void> {
  assertNotOver(attempt);
  const oncePlace = oncePerStep ? attempt.nextOncePlace(stream) : null;
  const encodeValue = (): string | Promise<string> => execution.host.serializer.encode(value);
  await write(
    execution,
    encodeBoth(encodeValue, () => ''),
    (text) => {
      // Encoding may have taken a while.
      assertNotOver(attempt);
      return { stream, value: text, seq: attempt.seq, by: { kind: 'attempt', attempt: attempt.attempt, oncePlace } };
    },
  );
  execution.assertRunning();
}

/** @throws OutsideWorkflowError */
function assertNotOver(attempt: RunningAttempt): void {
  if (!attempt.isOver) return;
  throw new OutsideWorkflowError(
    `writeStream was called by an attempt of step "${attempt.name}" that is over. Await every write in the step's body.`,
  );
}

type Texts = readonly [value: string | null, output: string];

/** At once, unless a codec takes its time. */
function encodeBoth(
  encodeValue: () => string | null | Promise<string>,
  encodeOutput: () => string | Promise<string>,
): () => Texts | Promise<Texts> {
  return () => {
    const value = encodeValue();
    const output = encodeOutput();
    return value instanceof Promise || output instanceof Promise ? Promise.all([value, output]) : [value, output];
  };
}

async function write(
  execution: RunningExecution,
  prepare: () => Texts | Promise<Texts>,
  entry: (...texts: Texts) => StreamWrite,
): Promise<void> {
  const { host, ownership } = execution;
  let stream = '';
  const answer = await execution.writeOrder.send(prepare, (texts) => {
    execution.assertRunning();
    const write = entry(...texts);
    stream = write.stream;
    return execution.write(host.store.writeStream(ownership, write));
  });
  switch (answer.kind) {
    case 'written':
      return;
    case 'stream-closed':
      throw new StreamClosedError(`Stream "${stream}" of workflow "${execution.workflowId}" is closed.`);
    case 'refused':
      throw new WriteRefusedError(`The database refuses an entry of stream "${stream}".`, { cause: answer.error });
    default:
      return execution.denied(answer);
  }
}
