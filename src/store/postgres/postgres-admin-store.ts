import { setMaxListeners } from 'node:events';
import type { Driver } from '../../drivers/driver.js';
import type {
  AdminStore,
  AttentionQuery,
  AttentionRow,
  AuditRow,
  CancelOptions,
  ControlAnswer,
  ControlCause,
  DeleteOptions,
  EventQuery,
  EventRow,
  EventVerbRequest,
  ForkOptions,
  OverviewRow,
  OwnershipRow,
  PageQuery,
  RecordPage,
  RepairOptions,
  RewindOptions,
  RollbackRow,
  SkipCompensationOptions,
  StepRow,
  UnservedVersionRow,
  WorkflowQuery,
  WorkflowRecord,
} from '../admin-store.js';
import { type ControlCall, ControlSender } from './admin-control.js';
import { RecordReader } from './admin-reader.js';
import { askAgain } from './ask-again.js';

export interface PostgresAdminStoreOptions {
  readonly driver: Driver;
  /** Validated by the caller, quoted here. */
  readonly schema: string;
}

/** The admin store on PostgreSQL: calls the control and list functions of sql/functions by name, and nothing else. */
export class PostgresAdminStore implements AdminStore {
  readonly #driver: Driver;
  readonly #schema: string;
  readonly #sender: ControlSender;
  readonly #reader: RecordReader;
  readonly #closing = new AbortController();

  constructor({ driver, schema }: PostgresAdminStoreOptions) {
    // Everyone who is waiting to try again listens to it.
    setMaxListeners(0, this.#closing.signal);
    this.#driver = driver;
    this.#schema = schema;
    this.#sender = new ControlSender(driver, schema, this.#closing.signal);
    this.#reader = new RecordReader(driver, schema, this.#closing.signal);
  }

  cancel(workflowIds: readonly string[], by: ControlCause, options: CancelOptions): Promise<readonly ControlAnswer[]> {
    const cancel = options.compensate ? 'cancel_with_compensation' : 'cancel_workflow';
    return this.#send(workflowIds, cancel, by, ['text', options.children], ['text', options.error]);
  }

  resume(workflowIds: readonly string[], by: ControlCause): Promise<readonly ControlAnswer[]> {
    return this.#send(workflowIds, 'resume_workflow', by);
  }

  prioritize(workflowId: string, by: ControlCause, priority: number): Promise<ControlAnswer> {
    return this.#sendOne(workflowId, 'prioritize_workflow', by, ['int4', priority]);
  }

  setAppVersion(
    workflowIds: readonly string[],
    by: ControlCause,
    appVersion: string,
  ): Promise<readonly ControlAnswer[]> {
    return this.#send(workflowIds, 'set_app_version', by, ['text', appVersion]);
  }

  skipCompensation(
    workflowId: string,
    by: ControlCause,
    { seq, output }: SkipCompensationOptions,
  ): Promise<ControlAnswer> {
    return this.#sendOne(workflowId, 'skip_compensation', by, ['int4', seq], ['text', output]);
  }

  rewind(workflowId: string, by: ControlCause, { toStep, childError }: RewindOptions): Promise<ControlAnswer> {
    return this.#sendOne(workflowId, 'rewind_workflow', by, ['int4', toStep], ['text', childError]);
  }

  repairStep(workflowId: string, by: ControlCause, options: RepairOptions): Promise<ControlAnswer> {
    const { seq, repair, output, error, resume } = options;
    return this.#sendOne(
      workflowId,
      'repair_step',
      by,
      ['int4', seq],
      ['text', repair],
      ['text', output],
      ['text', error],
      ['bool', resume],
    );
  }

  fork(workflowId: string, by: ControlCause, options: ForkOptions): Promise<ControlAnswer> {
    const { fromStep, workflowId: newId, appVersion } = options;
    return this.#sendOne(workflowId, 'fork_workflow', by, ['int4', fromStep], ['text', newId], ['text', appVersion]);
  }

  delete(workflowIds: readonly string[], by: ControlCause, options: DeleteOptions): Promise<readonly ControlAnswer[]> {
    return this.#send(workflowIds, 'delete_workflow', by, ['bool', options.force], ['text', options.childError]);
  }

  listWorkflows(query: WorkflowQuery): Promise<RecordPage<WorkflowRecord>> {
    return this.#reader.workflows(query);
  }

  getWorkflow(workflowId: string, { payload }: { readonly payload: boolean }): Promise<WorkflowRecord | null> {
    return this.#reader.workflow(workflowId, payload);
  }

  listSteps(workflowId: string, query: PageQuery & { readonly payload: boolean }): Promise<RecordPage<StepRow> | null> {
    return this.#reader.steps(workflowId, query);
  }

  getRollback(workflowId: string): Promise<RollbackRow | null> {
    return this.#reader.rollback(workflowId);
  }

  listOwnership(workflowId: string, query: PageQuery): Promise<RecordPage<OwnershipRow> | null> {
    return this.#reader.ownership(workflowId, query);
  }

  listAudit(workflowId: string, query: PageQuery): Promise<RecordPage<AuditRow>> {
    return this.#reader.audit(workflowId, query);
  }

  async redeliverEvent(request: EventVerbRequest): Promise<'done' | 'unchanged' | 'missing'> {
    return this.#actOnEvent('redeliver_event', request);
  }

  async discardEvent(request: EventVerbRequest): Promise<'done' | 'missing'> {
    return this.#actOnEvent('discard_event', request);
  }

  listEvents(query: EventQuery): Promise<RecordPage<EventRow>> {
    return this.#reader.events(query);
  }

  listAttention(query: AttentionQuery): Promise<RecordPage<AttentionRow>> {
    return this.#reader.attention(query);
  }

  unservedVersions(limit: number): Promise<readonly UnservedVersionRow[]> {
    return this.#reader.unservedVersions(limit);
  }

  overview(limit: number): Promise<readonly OverviewRow[]> {
    return this.#reader.overview(limit);
  }

  close(): Promise<void> {
    this.#closing.abort();
    return Promise.resolve();
  }

  async #actOnEvent<Result extends string>(functionName: string, request: EventVerbRequest): Promise<Result> {
    const { eventId, nonce, by } = request;
    const [row] = await askAgain<{ result: Result }>(
      this.#driver,
      this.#closing.signal,
      `SELECT "${this.#schema}".${functionName}($1::uuid, $2::uuid, $3::text, $4::text) AS result`,
      [eventId, nonce, by.actor, by.reason],
    );
    if (row === undefined) throw new TypeError(`${functionName} returned no row.`);
    return row.result;
  }

  #send(
    workflowIds: readonly string[],
    functionName: string,
    { actor, reason }: ControlCause,
    ...own: ControlCall['parameters']
  ): Promise<readonly ControlAnswer[]> {
    return this.#sender.send({ functionName, parameters: [['text', actor], ['text', reason], ...own] }, workflowIds);
  }

  async #sendOne(
    workflowId: string,
    functionName: string,
    by: ControlCause,
    ...own: ControlCall['parameters']
  ): Promise<ControlAnswer> {
    const [answer] = await this.#send([workflowId], functionName, by, ...own);
    if (answer === undefined) throw new TypeError(`${functionName} returned no row.`);
    return answer;
  }
}
