import { randomUUID } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import type { Driver, NotificationStream, SqlParameter, SqlRow } from '../../drivers/driver.js';
import { HEARTBEATS_PER_LEASE } from '../store.js';
import type { StreamReads, StreamWrite, StreamWriteAnswer } from '../stream-store.js';
import type { TransactionStore } from '../transaction-store.js';
import type { CompensationFailure, PlannedCompensation, RollbackRecord } from '../rollback-store.js';
import { newStoreCounters } from '../store-counters.js';
import type {
  ClaimAnswer,
  ClaimRequest,
  Denied,
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
  Refused,
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
import { askAgain } from './ask-again.js';
import { pause } from './backoff.js';
import { withHistory } from './claimed-history.js';
import { continueCall } from './continue-call.js';
import { GroupCommit } from './group-commit.js';
import { IdAnnouncer } from './id-announcer.js';
import { eventCall, receiveCall, sendCall } from './message-calls.js';
import {
  PendingCall,
  PendingCheckpoint,
  PendingCompletion,
  PendingEnqueue,
  PendingIntent,
  PendingStart,
  PendingStreamWrite,
  PendingSuspension,
  type PendingWrite,
} from './pending-write.js';
import { recordWithEventsCall } from './outbox-calls.js';
import type { ProtocolCall } from './protocol-call.js';
import { beginRollbackCall, failCompensationCall, planRollbackCall, readPlan, type PlanRow } from './rollback-calls.js';
import { release } from './release.js';
import {
  toEvent,
  toOutcome,
  toReport,
  type ClaimReportRow,
  type ClaimRow,
  type EventRow,
  type OutcomeRow,
} from './rows.js';
import { PostgresStreamReads } from './stream-reads.js';
import { unknownCall } from './unknown-call.js';
import type { OpenDataSource } from './transactions/data-sources.js';
import { DriverSource } from './transactions/driver-source.js';
import { PostgresTransactions } from './transactions/postgres-transactions.js';
import { HINT_TOPICS, passHint } from './hint-topics.js';
import { WorkAnnouncer } from './work-announcer.js';

/** Least time between two notifications of outcomes, in milliseconds. */
const OUTCOMES_GAP_MS = 20;
/** The same for entries of streams. */
const STREAMS_GAP_MS = 20;
/** The same for messages and events: their senders and receivers often wait for each other in turn. */
const MESSAGES_GAP_MS = 2;
/** How often a store that is closing looks whether its writes are through, in milliseconds. */
const DRAIN_CHECK_MS = 5;
/** Wake-ups dealt with in one statement. */
const WAKEUPS_PER_STATEMENT = 1_000;
/** Longest wait for the reply to a heartbeat, and as a part of the lease: later it would be of no use. */
const HEARTBEAT_TIMEOUT_MS = 5_000;

export interface PostgresStoreOptions {
  readonly driver: Driver;
  /** Validated by the caller, quoted here. */
  readonly schema: string;
  /** Whether to listen for notifications. Without them, everything is found by polling. */
  readonly notifications: boolean;
}

export interface TransactionsSettings {
  readonly idleTimeoutMs: number;
  readonly dataSources: ReadonlyMap<object, OpenDataSource>;
}

/** The store on PostgreSQL: calls the functions of sql/functions by name, and nothing else. */
export class PostgresStore implements Store {
  readonly counters = newStoreCounters();
  readonly #driver: Driver;
  readonly #schema: string;
  readonly #notifications: boolean;
  readonly #writer: GroupCommit;
  readonly #announcer: IdAnnouncer;
  readonly #messageAnnouncer: IdAnnouncer;
  readonly #streamAnnouncer: IdAnnouncer;
  readonly #workAnnouncer: WorkAnnouncer;
  readonly #eventAnnouncer: WorkAnnouncer;
  readonly #closing = new AbortController();
  readonly streams: StreamReads;
  #hints: StoreHints | undefined;
  #stream: NotificationStream | undefined;

  constructor({ driver, schema, notifications }: PostgresStoreOptions) {
    // Everyone who is waiting to try again listens to it.
    setMaxListeners(0, this.#closing.signal);
    this.#driver = driver;
    this.#schema = schema;
    this.#notifications = notifications;
    this.#writer = new GroupCommit(driver, schema, this.counters);
    this.#announcer = new IdAnnouncer(driver, `${schema}.outcome`, OUTCOMES_GAP_MS);
    this.#messageAnnouncer = new IdAnnouncer(driver, `${schema}.message`, MESSAGES_GAP_MS);
    this.#streamAnnouncer = new IdAnnouncer(driver, `${schema}.stream`, STREAMS_GAP_MS);
    this.#workAnnouncer = new WorkAnnouncer(driver, `${schema}.work`);
    this.#eventAnnouncer = new WorkAnnouncer(driver, `${schema}.outbox`);
    this.streams = new PostgresStreamReads((prepare, text, parameters) => this.#ask(prepare, text, parameters), schema);
  }

  /** Where bodies of transactions run. `idleTimeoutMs`: unless a transaction says something else. */
  transactions({ idleTimeoutMs, dataSources }: TransactionsSettings): TransactionStore {
    return new PostgresTransactions({
      driver: this.#driver,
      schema: this.#schema,
      turns: this.#writer,
      closing: this.#closing.signal,
      idleTimeoutMs,
      dataSources,
      verify: (ownership) => this.verifyOwnership(ownership),
      own: new DriverSource(this.#driver, { isShared: true }),
    });
  }

  start(request: StartRequest): Promise<StartAnswer> {
    return this.#submit(new PendingStart(request));
  }

  checkpoint(ownership: Ownership, step: StepRecord): Promise<WriteAnswer> {
    const events = step.events ?? [];
    if (events.length === 0) return this.#submit(new PendingCheckpoint(ownership, step));
    return this.#recordCall(ownership, recordWithEventsCall(step, events)).then((answer) => {
      if (answer.kind === 'written') this.announceEvents();
      return answer;
    });
  }

  recordIntent(ownership: Ownership, intent: IntentRecord): Promise<IntentAnswer> {
    return this.#submit(new PendingIntent(ownership, intent));
  }

  markUnknown(ownership: Ownership, mark: UnknownRecord): Promise<WriteAnswer> {
    return this.#recordCall(ownership, unknownCall(mark));
  }

  async recordEnqueue(ownership: Ownership, record: EnqueueRecord): Promise<EnqueueRecordAnswer> {
    const answer = await this.#submit(new PendingEnqueue(ownership, record));
    if (answer.kind === 'written' && record.child.delayMs === 0) this.#workAnnouncer.announce();
    return answer;
  }

  suspend(ownership: Ownership, waits: readonly Wait[]): Promise<SuspendAnswer> {
    return this.#submit(new PendingSuspension(ownership, waits));
  }

  receive(ownership: Ownership, record: ReceiveRecord): Promise<ReceiveAnswer> {
    return this.#recordCall(ownership, receiveCall(record));
  }

  async recordSend(ownership: Ownership, record: SendRecord): Promise<SendRecordAnswer> {
    const answer = await this.#recordCall(ownership, sendCall(record));
    if (answer.kind === 'written') this.announceMessage(record.receiver);
    return answer;
  }

  async recordEvent(ownership: Ownership, record: EventRecord): Promise<WriteAnswer> {
    const answer = await this.#recordCall(ownership, eventCall(record));
    if (answer.kind === 'written') this.announceMessage(ownership.workflowId);
    return answer;
  }

  async writeStream(ownership: Ownership, write: StreamWrite): Promise<StreamWriteAnswer> {
    const answer = await this.#submit(new PendingStreamWrite(ownership, write));
    if (answer.kind === 'written') {
      this.#streamAnnouncer.announce(ownership.workflowId);
      // Readers in this process need not wait for a notification, or for the poll.
      this.#hints?.onStreams([ownership.workflowId]);
    }
    return answer;
  }

  complete(ownership: Ownership, outcome: OutcomeRecord): Promise<WriteAnswer> {
    return this.#submit(new PendingCompletion(ownership, outcome));
  }

  async release(ownership: Ownership, record: ReleaseRecord): Promise<WriteAnswer> {
    const nonce = randomUUID();
    return release(
      ownership,
      (recordVersion) =>
        this.#ask(
          'holdfast_release',
          `SELECT answer, found_version::float8 AS found_version, found_detail FROM ${this.#call('release_workflow')}(
           $1::text, $2::uuid, $3::int8, $4::uuid, $5::text, $6::int8, $7::bool, $8::text, $9::text)`,
          [
            ownership.workflowId,
            ownership.token,
            recordVersion,
            nonce,
            record.to,
            record.to === 'DELAYED' ? record.wakeInMs : null,
            record.to !== 'BLOCKED' && record.unspendAttempt,
            record.to === 'BLOCKED' ? record.attention : null,
            record.to === 'BLOCKED' ? record.detail : null,
          ],
        ),
      this.#closing.signal,
    );
  }

  async continueAsNew(ownership: Ownership, run: NextRun): Promise<WriteAnswer> {
    const answer = await this.#recordCall(ownership, continueCall(run));
    // Whoever waits for the reply to an update may wait in vain now.
    if (answer.kind === 'written') this.announceMessage(ownership.workflowId);
    return answer;
  }

  readonly beginRollback = (by: Ownership, rollback: RollbackRecord) =>
    this.#recordCall(by, beginRollbackCall(rollback));

  readonly planRollback = (by: Ownership, plan: readonly PlannedCompensation[]) =>
    this.#recordCall(by, planRollbackCall(plan));

  readonly failCompensation = (by: Ownership, failure: CompensationFailure) =>
    this.#recordCall(by, failCompensationCall(failure));

  readonly readPlan = (id: string) => this.#ask<PlanRow>('holdfast_read_plan', readPlan(this.#schema), [id]);

  async failStuck(ownership: Ownership, error: string): Promise<void> {
    await this.#ask(
      'holdfast_fail_stuck',
      `SELECT ${this.#call('fail_stuck_workflow')}($1::text, $2::uuid, $3::uuid, $4::text)`,
      [ownership.workflowId, ownership.token, randomUUID(), error],
    );
  }

  async markStuck({ workflowId, token }: Ownership, detail: string | null): Promise<void> {
    await this.#ask('holdfast_mark_stuck', `SELECT ${this.#call('mark_stuck')}($1::text, $2::uuid, $3::text)`, [
      workflowId,
      token,
      detail,
    ]);
  }

  async verifyOwnership(ownership: Ownership): Promise<boolean> {
    const rows = await this.#ask(
      'holdfast_verify_ownership',
      `SELECT item FROM ${this.#call('verify_ownership')}($1::text[], $2::uuid[])`,
      [[ownership.workflowId], [ownership.token]],
    );
    return rows.length === 1;
  }

  async readOutcomes(workflowIds: readonly string[]): Promise<readonly FoundOutcome[]> {
    const rows = await this.#ask<OutcomeRow>(
      'holdfast_read_outcomes',
      `SELECT workflow_id, status, output, error FROM ${this.#call('read_outcomes')}($1::text[])`,
      [workflowIds],
    );
    return rows.map(toOutcome);
  }

  async findMessages(topics: readonly MessageTopic[]): Promise<readonly boolean[]> {
    const rows = await this.#ask<{ item: number }>(
      'holdfast_find_messages',
      `SELECT item FROM ${this.#call('find_messages')}($1::text[], $2::text[])`,
      [topics.map(({ workflowId }) => workflowId), topics.map(({ topic }) => topic)],
    );
    const found = new Set(rows.map(({ item }) => item));
    return topics.map((_, index) => found.has(index + 1));
  }

  async readEvents(events: readonly EventAddress[]): Promise<readonly (FoundEvent | undefined)[]> {
    const rows = await this.#ask<EventRow>(
      'holdfast_read_events',
      `SELECT item, answer, value, found_status FROM ${this.#call('read_events')}($1::text[], $2::text[])`,
      [events.map(({ workflowId }) => workflowId), events.map(({ key }) => key)],
    );
    const found = new Map(rows.map((row) => [row.item, toEvent(row)]));
    return events.map((_, index) => found.get(index + 1));
  }

  /** Tells other processes that this workflow may have got a message, or set an event. A hint, never waited for. */
  announceMessage(workflowId: string): void {
    this.#messageAnnouncer.announce(workflowId);
  }

  /** Tells relays that there may be something to deliver. A hint, never waited for. */
  announceEvents(): void {
    this.#eventAnnouncer.announce();
  }

  announceOutcome(workflowId: string): void {
    this.#announcer.announce(workflowId);
    this.#hints?.onStreams([workflowId]);
  }

  async registerExecutor(registration: ExecutorRegistration): Promise<number> {
    const { executorId, appVersion, leaseMs, host, processId } = registration;
    const [row] = await this.#ask<{ incarnation: number }>(
      'holdfast_register_executor',
      `SELECT ${this.#call('register_executor')}($1::text, $2::text, $3::int8, $4::text, $5::int4, $6::uuid)::float8 AS incarnation`,
      [executorId, appVersion, leaseMs, host, processId, randomUUID()],
    );
    if (row === undefined) throw new TypeError('register_executor returned no row.');
    return row.incarnation;
  }

  async heartbeat({ executorId, incarnation }: ExecutorIdentity, leaseMs: number): Promise<HeartbeatAnswer> {
    // Asked once: the caller counts the time since the last answer, and a late one must not look fresh.
    const [row] = await this.#driver.query<{ state: HeartbeatAnswer['state']; clock_ms: number }>(
      `SELECT ${this.#call('heartbeat')}($1::text, $2::int8, $3::int8) AS state,
              (extract(epoch FROM ${this.#call('clock')}()) * 1000)::float8 AS clock_ms`,
      [executorId, incarnation, leaseMs],
      {
        prepare: 'holdfast_heartbeat',
        timeoutMs: Math.min(HEARTBEAT_TIMEOUT_MS, leaseMs / HEARTBEATS_PER_LEASE),
        isUrgent: true,
      },
    );
    if (row === undefined) throw new TypeError('heartbeat returned no row.');
    return { state: row.state, clockMs: row.clock_ms };
  }

  async deregisterExecutor({ executorId, incarnation }: ExecutorIdentity): Promise<void> {
    await this.#driver.query(`SELECT ${this.#call('deregister_executor')}($1::text, $2::int8)`, [
      executorId,
      incarnation,
    ]);
  }

  async claim(request: ClaimRequest): Promise<ClaimAnswer> {
    const { executor, appVersion, names, limit, only, deadLetterError, turns } = request;
    if (request.wakeupsSeen !== true) await this.#drainWakeups();
    const rows = await this.#ask<ClaimRow | ClaimReportRow>(
      'holdfast_claim_work',
      `SELECT workflow_id, name, instance, token::text AS token, epoch::float8 AS epoch, deadline_in_ms,
              record_version::float8 AS record_version, attempts, reason, input, first_seq, has_history,
              report
         FROM ${this.#call('claim_work')}(
           $1::text, $2::int8, $3::text, $4::text[], $5::int4, $6::text[], $7::text, $8::text::jsonb)`,
      [executor.executorId, executor.incarnation, appVersion, names, limit, only ?? null, deadLetterError, turns],
    );
    const claimed = rows.filter((row): row is ClaimRow => row.workflow_id !== null);
    const report = toReport(rows.find((row): row is ClaimReportRow => row.workflow_id === null));
    const ask = this.#ask.bind(this);
    return { workflows: await withHistory(claimed, this.#schema, ask), ...report };
  }

  /** By itself, so that the rows it locks are free again when the claim, which may take longer, begins. */
  async #drainWakeups(): Promise<void> {
    for (let dealt = WAKEUPS_PER_STATEMENT; dealt >= WAKEUPS_PER_STATEMENT;) {
      const [row] = await this.#ask<{ dealt: number }>(
        'holdfast_drain_wakeups',
        `SELECT ${this.#call('drain_wakeups')}($1::int4) AS dealt`,
        [WAKEUPS_PER_STATEMENT],
      );
      dealt = row?.dealt ?? 0;
    }
  }

  async ownedWorkflows({ executorId, incarnation }: ExecutorIdentity): Promise<readonly OwnedWorkflow[]> {
    const rows = await this.#ask<{ workflow_id: string; token: string; record_version: number }>(
      'holdfast_owned_workflows',
      `SELECT workflow_id, token::text AS token, record_version::float8 AS record_version
         FROM ${this.#call('owned_workflows')}($1::text, $2::int8)`,
      [executorId, incarnation],
    );
    return rows.map((row) => ({ workflowId: row.workflow_id, token: row.token, recordVersion: row.record_version }));
  }

  subscribe(hints: StoreHints): void {
    this.#hints = hints;
    if (!this.#notifications) return;
    const channels = HINT_TOPICS.map((topic) => `${this.#schema}.${topic}`);
    this.#stream = this.#driver.listen(channels, {
      onListening: hints.onGap,
      onLost: () => {
        this.counters.listenerGaps += 1;
      },
      onNotification: (channel, payload) => {
        // What has ended here was told to those who wait here, and asking about all others would be in vain.
        if (this.#announcer.isOwn(payload)) return;
        passHint(hints, channel.slice(this.#schema.length + 1), payload);
      },
    });
  }

  async close({ drainMs = 0 }: { readonly drainMs?: number } = {}): Promise<void> {
    const deadline = performance.now() + drainMs;
    while (!this.#writer.isIdle && performance.now() < deadline) {
      await pause(DRAIN_CHECK_MS, this.#closing.signal);
    }
    this.#closing.abort();
    this.#announcer.close();
    this.#messageAnnouncer.close();
    this.#streamAnnouncer.close();
    this.#workAnnouncer.close();
    this.#eventAnnouncer.close();
    this.#writer.close();
    await this.#stream?.close();
  }

  #submit<Answer>(write: PendingWrite & { readonly answered: Promise<Answer> }): Promise<Answer> {
    this.#writer.submit(write);
    return write.answered;
  }

  #recordCall<Answer>(ownership: Ownership, call: ProtocolCall<Answer>): Promise<Answer | Denied | Refused> {
    // What a call is answered with is what its answerOf makes, or that it was denied or refused.
    return this.#submit(new PendingCall(ownership, call)) as Promise<Answer | Denied | Refused>;
  }

  /** Asks until the database answers. Only for what may safely happen twice. */
  #ask<Row extends SqlRow>(
    prepare: string,
    text: string,
    parameters: readonly SqlParameter[],
  ): Promise<readonly Row[]> {
    return askAgain<Row>(this.#driver, this.#closing.signal, text, parameters, { prepare, forMs: Infinity });
  }

  #call(functionName: string): string {
    return `"${this.#schema}".${functionName}`;
  }
}
