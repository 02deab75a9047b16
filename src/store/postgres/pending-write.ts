import { randomUUID } from 'node:crypto';
import type {
  IntentAnswer,
  IntentRecord,
  OutcomeRecord,
  Ownership,
  StartAnswer,
  StartRequest,
  StepRecord,
  WriteAnswer,
} from '../store.js';

/** What every write that waits for its flush carries. */
abstract class Pending<Answer> {
  /** How a retry recognises its own earlier commit. */
  readonly nonce = randomUUID();
  /** How often it was answered with a version conflict. */
  conflicts = 0;
  /** How often its row was locked by somebody else. */
  locked = 0;
  readonly answered: Promise<Answer>;
  #resolve!: (answer: Answer) => void;
  #reject!: (cause: unknown) => void;

  constructor(
    readonly workflowId: string,
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

export class PendingStart extends Pending<StartAnswer> {
  readonly kind = 'start';
  constructor(readonly request: StartRequest) {
    super(request.workflowId, ROW_OVERHEAD_BYTES + request.input.length);
  }
}

export class PendingCheckpoint extends Pending<WriteAnswer> {
  readonly kind = 'checkpoint';
  constructor(
    readonly ownership: Ownership,
    readonly step: StepRecord,
  ) {
    super(ownership.workflowId, ROW_OVERHEAD_BYTES + (step.output?.length ?? 0) + (step.error?.length ?? 0));
  }
}

export class PendingCompletion extends Pending<WriteAnswer> {
  readonly kind = 'complete';
  constructor(
    readonly ownership: Ownership,
    readonly outcome: OutcomeRecord,
  ) {
    super(ownership.workflowId, ROW_OVERHEAD_BYTES + (outcome.output?.length ?? 0) + (outcome.error?.length ?? 0));
  }
}

export class PendingIntent extends Pending<IntentAnswer> {
  readonly kind = 'intent';
  constructor(
    readonly ownership: Ownership,
    readonly intent: IntentRecord,
  ) {
    super(ownership.workflowId, ROW_OVERHEAD_BYTES + (intent.child?.input.length ?? 0));
  }
}

export type PendingWrite = PendingStart | PendingCheckpoint | PendingCompletion | PendingIntent;
