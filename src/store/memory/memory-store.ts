import { randomUUID } from 'node:crypto';
import { ConnectionLostError } from '../../errors/database-errors.js';
import type {
  ClaimAnswer,
  ClaimRequest,
  EnqueueRecord,
  EnqueueRecordAnswer,
  EventAddress,
  EventRecord,
  ExecutorIdentity,
  ExecutorRegistration,
  FoundEvent,
  FoundOutcome,
  HeartbeatAnswer,
  IntentAnswer,
  IntentRecord,
  MessageTopic,
  NextRun,
  OutcomeRecord,
  OwnedWorkflow,
  Ownership,
  ReceiveAnswer,
  ReceiveRecord,
  ReleaseRecord,
  SendRecord,
  SendRecordAnswer,
  StartAnswer,
  StartRequest,
  StepRecord,
  Store,
  StoreHints,
  SuspendAnswer,
  UnknownRecord,
  Wait,
  WriteAnswer,
} from '../store.js';
import type { CompensationFailure, PlannedCompensation, RollbackRecord } from '../rollback-store.js';
import type { StoreCounters } from '../store-counters.js';
import type { StreamReads, StreamWrite, StreamWriteAnswer } from '../stream-store.js';
import { claimWork } from './claim/claim-work.js';
import { complete, continueWorkflow, release } from './complete.js';
import type { Clock } from './clock.js';
import { readEvent, recordEvent } from './events.js';
import { deregisterExecutor, heartbeat, ownedWorkflows, registerExecutor } from './executors.js';
import { passHint } from './hint-board.js';
import { DIRECT_LINK, LostReplyError, type Link } from './link.js';
import { MemoryCalls } from './memory-calls.js';
import type { MemoryDatabase } from './memory-database.js';
import { consumeMessage, hasMessage, recordSend } from './messages.js';
import { readOutcome } from './outcomes.js';
import { recordEnqueue } from './record-enqueue.js';
import { recordIntent } from './record-intent.js';
import { recordStep } from './record-result.js';
import { beginRollback, failCompensation, planRollback, readPlan } from './rollback.js';
import { start } from './start.js';
import { isChanged, readStream, writeStream } from './streams.js';
import { failStuck, markStuck } from './stuck.js';
import { suspend } from './suspend.js';
import { markUnknown } from './unknown.js';
import { drainWakeUps } from './wake-ups.js';

export interface MemoryStoreOptions {
  /** Shared by the stores of all processes. */
  readonly database: MemoryDatabase;
  /** This process's way to it: without faults by default. */
  readonly link?: Link;
  /** How this process pauses before it asks again: by the database's clock by default. */
  readonly clock?: Pick<Clock, 'pause'>;
  /** Makes the nonces of writes: random UUIDs by default. */
  readonly newNonce?: () => string;
}

/** The store in memory: the same promises, by the database's own clock. Each process has one of its own. */
export class MemoryStore implements Store {
  readonly counters: Readonly<StoreCounters>;
  readonly streams: StreamReads;
  readonly #db: MemoryDatabase;
  readonly #calls: MemoryCalls;
  #stopListening: (() => void) | undefined;
  #hints: StoreHints | undefined;

  constructor({ database, link = DIRECT_LINK, clock = database.clock, newNonce = randomUUID }: MemoryStoreOptions) {
    this.#db = database;
    this.#calls = new MemoryCalls({ link, clock, newNonce });
    this.counters = this.#calls.counters;
    this.streams = {
      readStream: (position, limits) => this.#calls.ask(() => readStream(database, position, limits)),
      changedStreams: (positions) =>
        this.#calls.ask(() => positions.flatMap((position, index) => (isChanged(database, position) ? [index] : []))),
    };
  }

  start(request: StartRequest): Promise<StartAnswer> {
    const nonce = this.#calls.newNonce();
    return this.#calls.inLine(request, () => this.#calls.ask(() => start(this.#db, request, nonce)));
  }

  async checkpoint(ownership: Ownership, result: StepRecord): Promise<WriteAnswer> {
    const answer = await this.#calls.write(ownership, (check) => recordStep(this.#db, check, result));
    if (answer.kind === 'written' && (result.events ?? []).length > 0) this.announceEvents();
    return answer;
  }

  recordIntent(ownership: Ownership, intent: IntentRecord): Promise<IntentAnswer> {
    return this.#calls.write(ownership, (check) => recordIntent(this.#db, check, intent));
  }

  markUnknown(ownership: Ownership, mark: UnknownRecord): Promise<WriteAnswer> {
    return this.#calls.write(ownership, (check) => markUnknown(this.#db, check, mark));
  }

  recordEnqueue(ownership: Ownership, record: EnqueueRecord): Promise<EnqueueRecordAnswer> {
    return this.#calls.write(ownership, (check) => recordEnqueue(this.#db, check, record));
  }

  receive(ownership: Ownership, record: ReceiveRecord): Promise<ReceiveAnswer> {
    return this.#calls.write(ownership, (check) => consumeMessage(this.#db, check, record));
  }

  async recordSend(ownership: Ownership, record: SendRecord): Promise<SendRecordAnswer> {
    const answer = await this.#calls.write(ownership, (check) => recordSend(this.#db, check, record));
    if (answer.kind === 'written') this.announceMessage(record.receiver);
    return answer;
  }

  async recordEvent(ownership: Ownership, record: EventRecord): Promise<WriteAnswer> {
    const answer = await this.#calls.write(ownership, (check) => recordEvent(this.#db, check, record));
    if (answer.kind === 'written') this.announceMessage(ownership.workflowId);
    return answer;
  }

  async writeStream(ownership: Ownership, write: StreamWrite): Promise<StreamWriteAnswer> {
    const answer = await this.#calls.write(ownership, (check) => writeStream(this.#db, check, write));
    if (answer.kind === 'written') {
      this.#db.notify({ topic: 'stream', workflowIds: [ownership.workflowId] });
      this.#hints?.onStreams([ownership.workflowId]);
    }
    return answer;
  }

  complete(ownership: Ownership, outcome: OutcomeRecord): Promise<WriteAnswer> {
    return this.#calls.write(ownership, (check) => complete(this.#db, check, outcome));
  }

  beginRollback(ownership: Ownership, rollback: RollbackRecord): Promise<WriteAnswer> {
    return this.#calls.write(ownership, (check) => beginRollback(this.#db, check, rollback));
  }

  planRollback(ownership: Ownership, plan: readonly PlannedCompensation[]): Promise<WriteAnswer> {
    return this.#calls.write(ownership, (check) => planRollback(this.#db, check, plan));
  }

  failCompensation(ownership: Ownership, failure: CompensationFailure): Promise<WriteAnswer> {
    return this.#calls.write(ownership, (check) => failCompensation(this.#db, check, failure));
  }

  readPlan(workflowId: string): Promise<readonly PlannedCompensation[]> {
    return this.#calls.ask(() => readPlan(this.#db, workflowId));
  }

  release(ownership: Ownership, record: ReleaseRecord): Promise<WriteAnswer> {
    return this.#calls.writeNow(ownership, (check) => release(this.#db, check, record));
  }

  continueAsNew(ownership: Ownership, run: NextRun): Promise<WriteAnswer> {
    return this.#calls.write(ownership, (check) => continueWorkflow(this.#db, check, run));
  }

  suspend(ownership: Ownership, waits: readonly Wait[]): Promise<SuspendAnswer> {
    return this.#calls.write(ownership, (check) => suspend(this.#db, check, waits));
  }

  failStuck(ownership: Ownership, error: string): Promise<void> {
    const nonce = this.#calls.newNonce();
    return this.#calls.ask(() => {
      failStuck(this.#db, ownership, error, nonce);
    });
  }

  markStuck(ownership: Ownership, detail: string | null): Promise<void> {
    return this.#calls.ask(() => {
      markStuck(this.#db, ownership, detail);
    });
  }

  verifyOwnership({ workflowId, token }: Ownership): Promise<boolean> {
    return this.#calls.ask(() => this.#db.workflows.get(workflowId)?.ownerToken === token);
  }

  readOutcomes(workflowIds: readonly string[]): Promise<readonly FoundOutcome[]> {
    return this.#calls.ask(() =>
      workflowIds.map((workflowId) => readOutcome(this.#db, workflowId)).filter((found) => found !== undefined),
    );
  }

  findMessages(topics: readonly MessageTopic[]): Promise<readonly boolean[]> {
    return this.#calls.ask(() => topics.map((topic) => hasMessage(this.#db, topic)));
  }

  readEvents(events: readonly EventAddress[]): Promise<readonly (FoundEvent | undefined)[]> {
    return this.#calls.ask(() => events.map((event) => readEvent(this.#db, event)));
  }

  announceEvents(): void {
    this.#db.notify({ topic: 'outbox' });
  }

  announceOutcome(workflowId: string): void {
    this.#db.notify({ topic: 'outcome', workflowIds: [workflowId] });
    this.#hints?.onStreams([workflowId]);
  }

  /** Tells other processes that this workflow may have got a message, or set an event. A hint, never waited for. */
  announceMessage(workflowId: string): void {
    this.#db.notify({ topic: 'message', workflowIds: [workflowId] });
  }

  registerExecutor(registration: ExecutorRegistration): Promise<number> {
    return this.#calls.ask(() => registerExecutor(this.#db, registration));
  }

  heartbeat(executor: ExecutorIdentity, leaseMs: number): Promise<HeartbeatAnswer> {
    // Asked once: the caller counts the time since the last answer, and a late one must not look fresh.
    return this.#once(() => heartbeat(this.#db, executor, leaseMs));
  }

  async deregisterExecutor(executor: ExecutorIdentity): Promise<void> {
    await this.#once(() => {
      deregisterExecutor(this.#db, executor);
    });
  }

  async claim(request: ClaimRequest): Promise<ClaimAnswer> {
    // For the ends of executions in quick succession, one look at the wake-ups is enough.
    if (request.wakeupsSeen !== true) {
      await this.#calls.ask(() => {
        drainWakeUps(this.#db);
      });
    }
    // What a claim whose reply was lost has taken is found by the executor's comparison with its running set.
    return this.#calls.ask(() => claimWork(this.#db, request));
  }

  ownedWorkflows(executor: ExecutorIdentity): Promise<readonly OwnedWorkflow[]> {
    return this.#calls.ask(() => ownedWorkflows(this.#db, executor));
  }

  subscribe(hints: StoreHints): void {
    this.#hints = hints;
    this.#stopListening = this.#db.listen((hint) => {
      this.#calls.hint(() => {
        passHint(hints, hint);
      });
    });
    this.#calls.hint(hints.onGap);
  }

  async close({ drainMs = 0 }: { readonly drainMs?: number } = {}): Promise<void> {
    await this.#calls.close(drainMs);
    this.#stopListening?.();
  }

  async #once<Reply>(transaction: () => Reply): Promise<Reply> {
    try {
      return await this.#calls.once(transaction);
    } catch (error) {
      if (!(error instanceof LostReplyError)) throw error;
      throw new ConnectionLostError('No reply came: whether it took effect is unknown.', { cause: error });
    }
  }
}
