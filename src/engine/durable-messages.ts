import type { SendOptions } from '../api/messages.js';
import type { StandardSchema } from '../api/standard-schema.js';
import { InvalidArgumentError } from '../errors/admin-errors.js';
import { PayloadCodecError } from '../errors/value-errors.js';
import { WriteRefusedError } from '../errors/workflow-errors.js';
import type { EventAddress, RecordedStep, StepKind, Wait } from '../store/store.js';
import { encode, orRecordFailure, recordResult, recordWait, type StepIdentity } from './durable-calls.js';
import { startDecoding, type Decoding } from './decoding.js';
import { elapsedSince } from './elapsed.js';
import type { RunningExecution } from './execution-host.js';
import { valueOfEvent } from './found-event.js';
import { checkSchema } from './schema.js';
import { sendRefusalError } from './send-refusal.js';
import type { Watch } from './watch.js';

// Messages and events as durable calls: each is numbered synchronously with the call, replays what is recorded, and takes
// effect in the transaction of the checkpoint that records it.

/**
 * Receives the longest waiting message of a topic; waits for one when there is none. `undefined` when none has come in time.
 * `timeoutMs` null: waits as long as it takes.
 */
export function receiveMessage(execution: RunningExecution, topic: string, timeoutMs: number | null): Promise<unknown> {
  return execution.call(async (open) => {
    const { seq, recorded } = execution.enter('receive', topic);
    open.receives = seq;
    if (recorded?.complete === true) return execution.replayed(recorded);
    await execution.replayOver();
    const step = identify(execution, seq, topic, 'receive');
    const message = await orRecordFailure(execution, step, () => awaitMessage(execution, step, timeoutMs, recorded));
    return message.take();
  });
}

/** Sends a message to a workflow. What does not fit the schema is refused. */
export function sendMessage(
  execution: RunningExecution,
  receiver: string,
  topic: string,
  message: unknown,
  options: SendOptions,
  schema?: StandardSchema,
): Promise<void> {
  return execution.call(async () => {
    const name = `${topic} to ${receiver}`;
    const { seq, recorded } = execution.enter('send', name);
    if (recorded !== undefined) {
      await execution.replayed(recorded);
      return;
    }
    await execution.replayOver();
    const step = identify(execution, seq, name, 'send');
    await orRecordFailure(execution, step, async () => {
      if (options.transaction !== undefined) {
        throw new InvalidArgumentError(
          "Inside a workflow, send commits with the workflow's own record: leave out the transaction.",
        );
      }
      if (schema !== undefined) await checkSchema(schema, message, `message of topic "${topic}"`);
      const { host, ownership } = execution;
      const sent = host.store.recordSend(ownership, {
        seq,
        name,
        receiver,
        topic,
        payload: await encodeGiven(execution, message),
        idempotencyKey: options.idempotencyKey ?? null,
        output: await encode(execution, undefined),
        elapsedMs: elapsedSince(execution.runtime, step.startedAt),
      });
      const answer = await execution.write(sent);
      switch (answer.kind) {
        case 'written':
          host.arrivals.check([receiver]);
          await execution.progress();
          break;
        case 'no-receiver':
        case 'receiver-ended':
          throw sendRefusalError(receiver, answer);
        case 'refused':
          throw new WriteRefusedError('The database refuses the message.', { cause: answer.error });
        default:
          execution.denied(answer);
      }
    });
  });
}

/** Sets an event of the workflow itself. */
export function recordEvent(execution: RunningExecution, key: string, value: unknown): Promise<void> {
  return recordEventOf(execution, key, () => Promise.resolve(value));
}

/** The same for a value that is made when the call has got its number: making it may take a while. */
export function recordEventOf(execution: RunningExecution, key: string, make: () => Promise<unknown>): Promise<void> {
  return execution.call(async () => {
    const { seq, recorded } = execution.enter('event', key);
    if (recorded !== undefined) {
      await execution.replayed(recorded);
      return;
    }
    await execution.replayOver();
    const step = identify(execution, seq, key, 'event');
    await orRecordFailure(execution, step, async () => {
      const { host, ownership, workflowId } = execution;
      const set = host.store.recordEvent(ownership, {
        seq,
        key,
        value: await encodeGiven(execution, await make()),
        output: await encode(execution, undefined),
        elapsedMs: elapsedSince(execution.runtime, step.startedAt),
      });
      const answer = await execution.write(set);
      switch (answer.kind) {
        case 'written':
          host.arrivals.check([workflowId]);
          await execution.progress();
          break;
        case 'refused':
          throw new WriteRefusedError('The database refuses the event.', { cause: answer.error });
        default:
          execution.denied(answer);
      }
    });
  });
}

/** Reads an event of any workflow, and records what it read; waits until it is set. `undefined` when it was not in time. */
export function readEvent(
  execution: RunningExecution,
  event: EventAddress,
  timeoutMs: number | null,
): Promise<unknown> {
  return execution.call(async () => {
    const name = `${event.key} of ${event.workflowId}`;
    const { seq, recorded } = execution.enter('event-read', name);
    if (recorded?.complete === true) return execution.replayed(recorded);
    await execution.replayOver();
    const step = identify(execution, seq, name, 'event-read');
    const output = await orRecordFailure(execution, step, () =>
      awaitEvent(execution, step, event, timeoutMs, recorded),
    );
    const value = startDecoding(execution.host.serializer, output);
    await value.done;
    await recordResult(execution, step, { output, error: null });
    return value.take();
  });
}

function identify(execution: RunningExecution, seq: number, name: string, kind: StepKind): StepIdentity {
  return { seq, name, kind, childId: null, startedAt: execution.runtime.now() };
}

/** Takes a message, or records that none has come in time. */
async function awaitMessage(
  execution: RunningExecution,
  step: StepIdentity,
  timeoutMs: number | null,
  recorded: RecordedStep | undefined,
): Promise<Decoding> {
  const { host, ownership, workflowId } = execution;
  const { seq, name: topic } = step;
  const nothing = await encode(execution, undefined);
  const { lines, messages } = host.arrivals;
  const place = lines.enter(execution, topic);
  const leave = (): void => {
    place.leave();
    // Whose turn it is now looks.
    messages.check([workflowId]);
  };
  return watching(execution, messages.watch({ workflowId, topic }), leave, async (watch) => {
    const limit = new WaitLimit(execution, step, timeoutMs, recorded);
    for (;;) {
      if (!place.isFirst && !limit.isOver) {
        await limit.begin();
        await limit.wait(watch, { kind: 'message', topic });
        continue;
      }
      const elapsedMs = elapsedSince(execution.runtime, step.startedAt);
      const otherwise = limit.isOver ? nothing : null;
      const answer = await execution.write(host.store.receive(ownership, { seq, topic, otherwise, elapsedMs }));
      switch (answer.kind) {
        case 'received': {
          const message = startDecoding(host.serializer, answer.payload);
          await execution.progress(message.done);
          return message;
        }
        case 'empty':
          await limit.begin();
          await limit.wait(watch, { kind: 'message', topic });
          break;
        case 'refused':
          throw new WriteRefusedError('The database refuses the record of the message.', { cause: answer.error });
        default:
          return execution.denied(answer);
      }
    }
  });
}

async function awaitEvent(
  execution: RunningExecution,
  step: StepIdentity,
  event: EventAddress,
  timeoutMs: number | null,
  recorded: RecordedStep | undefined,
): Promise<string> {
  const { host } = execution;
  return watching(execution, host.arrivals.events.watch(event), undefined, async (watch) => {
    const limit = new WaitLimit(execution, step, timeoutMs, recorded);
    for (;;) {
      // Asked after the time was looked at: what came just in time counts.
      const { isOver } = limit;
      const [found] = await execution.write(host.store.readEvents([event]));
      if (found !== undefined) return valueOfEvent(event, found);
      if (isOver) return encode(execution, undefined);
      await limit.begin();
      await limit.wait(watch, { kind: 'event', ...event });
    }
  });
}

/** Watches as long as the work takes, but not longer than the execution is there. */
async function watching<Found, Result>(
  execution: RunningExecution,
  watch: Watch<Found>,
  onEnd: (() => void) | undefined,
  work: (watch: Watch<Found>) => Promise<Result>,
): Promise<Result> {
  const forget = execution.onGone(() => {
    watch.stop();
  });
  try {
    return await work(watch);
  } finally {
    forget();
    watch.stop();
    onEnd?.();
  }
}

/** How long a call waits. The end is recorded as a moment of the database's clock before the wait begins. */
class WaitLimit {
  readonly #execution: RunningExecution;
  readonly #step: StepIdentity;
  readonly #timeoutMs: number | null;
  /** By the monotonic clock; undefined: not begun. */
  #endAt: number | undefined;

  constructor(
    execution: RunningExecution,
    step: StepIdentity,
    timeoutMs: number | null,
    recorded: RecordedStep | undefined,
  ) {
    this.#execution = execution;
    this.#step = step;
    this.#timeoutMs = timeoutMs;
    if (recorded !== undefined && recorded.remainingMs !== null) {
      // Counted when the history was loaded, a moment before this execution was made.
      this.#endAt = execution.runtime.now() + recorded.remainingMs - execution.ageMs;
    }
  }

  get isOver(): boolean {
    return this.#endAt === undefined ? this.#timeoutMs === 0 : this.#execution.runtime.now() >= this.#endAt;
  }

  /** Makes the end durable, unless it is. */
  async begin(): Promise<void> {
    if (this.#timeoutMs === null || this.#endAt !== undefined) return;
    const { seq, name, kind } = this.#step;
    const remainingMs = await recordWait(this.#execution, { seq, name, kind, sleep: { ms: this.#timeoutMs } });
    this.#endAt = this.#execution.runtime.now() + remainingMs;
  }

  /** Resolves when the watch finds something or the time is up; never, when the execution ends first. */
  async wait(watch: Watch<unknown>, wait: Wait): Promise<void> {
    const waits: Promise<unknown>[] = [watch.next()];
    let cancel = (): void => undefined;
    const leftMs = this.#endAt === undefined ? undefined : this.#endAt - this.#execution.runtime.now();
    if (leftMs !== undefined) {
      waits.push(
        new Promise<void>((resolve) => {
          cancel = this.#execution.runtime.startTimer(leftMs, resolve);
        }),
      );
    }
    const forget = this.#execution.onGone(() => {
      cancel();
    });
    try {
      await this.#execution.waiting(wait, Promise.race(waits), leftMs);
    } finally {
      cancel();
      forget();
    }
  }
}

/** Encodes what the workflow's code gave. One that cannot be stored is the code's fault; a codec that fails is not. */
async function encodeGiven(execution: RunningExecution, value: unknown): Promise<string> {
  try {
    return await execution.host.serializer.encode(value);
  } catch (error) {
    if (error instanceof PayloadCodecError) execution.blockUnrecordable(error);
    throw error;
  }
}
