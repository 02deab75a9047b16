import { randomUUID } from 'node:crypto';
import type {
  EnqueueRecord,
  EnqueueRecordAnswer,
  IntentAnswer,
  IntentRecord,
  OutcomeRecord,
  Ownership,
  StartAnswer,
  StartRequest,
  StepRecord,
  SuspendAnswer,
  Wait,
  WriteAnswer,
} from '../store.js';
import type { ProtocolCall } from './protocol-call.js';
import type { StreamWrite, StreamWriteAnswer } from '../stream-store.js';

/** What every write that waits for its flush carries. */
abstract class Pending<Answer> {
  /** How a retry recognises its own earlier commit. */
  readonly nonce = randomUUID();
  /** How often it was answered with a version conflict. */
  conflicts = 0;
  /** How often its row was locked by somebody else. */
  locked = 0;
  /** Whether it has to be sent by itself: in company it held up, or failed, its neighbours. */
  alone = false;
  readonly answered: Promise<Answer>;
  #resolve!: (answer: Answer) => void;
  #reject!: (cause: unknown) => void;

  constructor(
    readonly workflowId: string,
    /** The execution's. Writes of one execution go in order; two executions of one workflow do not wait for each other. */
    readonly token: string,
    /** Approximate size on the wire. */
    readonly bytes: number,
  ) {
    this.answered = new Promise<Answer>((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  answer(answer: Answer): void {
    this.#resolve(answer);
  }

  abandon(cause: unknown): void {
    this.#reject(cause);
  }
}

/** Bytes of a row besides its payload, for the batch's cap. */
const ROW_OVERHEAD_BYTES = 200;

/** Texts are counted in bytes: in UTF-16 units, a batch of Chinese texts would be three times as large as its cap. */
function sizeOf(...texts: readonly (string | null | undefined)[]): number {
  let bytes = ROW_OVERHEAD_BYTES;
  for (const text of texts) {
    if (text !== null && text !== undefined) bytes += Buffer.byteLength(text);
  }
  return bytes;
}

export class PendingStart extends Pending<StartAnswer> {
  readonly kind = 'start';
  constructor(readonly request: StartRequest) {
    super(request.workflowId, request.token, sizeOf(request.input, request.attributes));
  }
}

export class PendingCheckpoint extends Pending<WriteAnswer> {
  readonly kind = 'checkpoint';
  constructor(
    readonly ownership: Ownership,
    readonly step: StepRecord,
  ) {
    super(ownership.workflowId, ownership.token, sizeOf(step.output, step.error, step.attemptErrors));
  }
}

export class PendingCompletion extends Pending<WriteAnswer> {
  readonly kind = 'complete';
  constructor(
    readonly ownership: Ownership,
    readonly outcome: OutcomeRecord,
  ) {
    super(ownership.workflowId, ownership.token, sizeOf(outcome.output, outcome.error));
  }
}

export class PendingIntent extends Pending<IntentAnswer> {
  readonly kind = 'intent';
  constructor(
    readonly ownership: Ownership,
    readonly intent: IntentRecord,
  ) {
    super(ownership.workflowId, ownership.token, sizeOf(intent.child?.input, intent.child?.attributes));
  }
}

export class PendingEnqueue extends Pending<EnqueueRecordAnswer> {
  readonly kind = 'enqueue';
  constructor(
    readonly ownership: Ownership,
    readonly record: EnqueueRecord,
  ) {
    super(ownership.workflowId, ownership.token, sizeOf(record.child.input, record.child.attributes));
  }
}

export class PendingSuspension extends Pending<SuspendAnswer> {
  readonly kind = 'suspension';
  constructor(
    readonly ownership: Ownership,
    readonly waits: readonly Wait[],
  ) {
    super(ownership.workflowId, ownership.token, sizeOf(JSON.stringify(waits)));
  }
}

/** Any other write of an execution; see {@link ProtocolCall}. What the answers are, the call knows. */
export class PendingCall extends Pending<unknown> {
  readonly kind = 'call';
  constructor(
    readonly ownership: Ownership,
    readonly call: ProtocolCall<unknown>,
  ) {
    super(
      ownership.workflowId,
      ownership.token,
      sizeOf(...call.values.filter((value): value is string => typeof value === 'string')),
    );
  }
}

export class PendingStreamWrite extends Pending<StreamWriteAnswer> {
  readonly kind = 'stream';
  constructor(
    readonly ownership: Ownership,
    readonly write: StreamWrite,
  ) {
    super(ownership.workflowId, ownership.token, sizeOf(write.value));
  }
}

/** Rarer writes, which travel apart from the others: one function to a statement. */
export type ApartWrite = PendingIntent | PendingEnqueue | PendingSuspension | PendingCall;

export type PendingWrite = PendingStart | PendingCheckpoint | PendingCompletion | PendingStreamWrite | ApartWrite;
