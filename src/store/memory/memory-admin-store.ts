import { randomUUID } from 'node:crypto';
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
import { compareBytes } from './byte-order.js';
import type { Act } from './control/audit.js';
import { cancelWithCompensation, skipCompensation } from './control/compensation.js';
import { deleteWorkflow } from './control/delete.js';
import { discardEvent, redeliverEvent } from './control/events.js';
import { fork } from './control/fork.js';
import { repairStep } from './control/repair.js';
import { rewind } from './control/rewind.js';
import { cancel, control, prioritize, resume, setAppVersion } from './control/verbs.js';
import { DIRECT_LINK } from './link.js';
import { MemoryCalls } from './memory-calls.js';
import type { MemoryDatabase } from './memory-database.js';
import type { MemoryStoreOptions } from './memory-store.js';
import { overview, unservedVersions } from './records/fleet.js';
import { listAttention, listEvents } from './records/events.js';
import { listAudit, listOwnership, listSteps } from './records/lists.js';
import { getWorkflow, listWorkflows } from './records/workflows.js';
import { getRollback } from './rollback.js';
import type { Workflow } from './tables.js';

/** The admin store in memory. */
export class MemoryAdminStore implements AdminStore {
  readonly #db: MemoryDatabase;
  readonly #calls: MemoryCalls;

  constructor({ database, link = DIRECT_LINK, clock = database.clock, newNonce = randomUUID }: MemoryStoreOptions) {
    this.#db = database;
    this.#calls = new MemoryCalls({ link, clock, newNonce });
  }

  cancel(workflowIds: readonly string[], by: ControlCause, options: CancelOptions): Promise<readonly ControlAnswer[]> {
    return this.#all(workflowIds, 'cancel', by, (workflow, act) =>
      options.compensate
        ? cancelWithCompensation(this.#db, workflow, act, options)
        : cancel(this.#db, workflow, act, options),
    );
  }

  resume(workflowIds: readonly string[], by: ControlCause): Promise<readonly ControlAnswer[]> {
    return this.#all(workflowIds, 'resume', by, (workflow, act) => resume(this.#db, workflow, act));
  }

  prioritize(workflowId: string, by: ControlCause, priority: number): Promise<ControlAnswer> {
    return this.#one(workflowId, 'prioritize', by, (workflow, act) => prioritize(this.#db, workflow, act, priority));
  }

  setAppVersion(
    workflowIds: readonly string[],
    by: ControlCause,
    appVersion: string,
  ): Promise<readonly ControlAnswer[]> {
    return this.#all(workflowIds, 'setAppVersion', by, (workflow, act) =>
      setAppVersion(this.#db, workflow, act, appVersion),
    );
  }

  rewind(workflowId: string, by: ControlCause, options: RewindOptions): Promise<ControlAnswer> {
    return this.#one(workflowId, 'rewind', by, (workflow, act) => rewind(this.#db, workflow, act, options));
  }

  repairStep(workflowId: string, by: ControlCause, options: RepairOptions): Promise<ControlAnswer> {
    return this.#one(workflowId, 'repair', by, (workflow, act) => repairStep(this.#db, workflow, act, options));
  }

  fork(workflowId: string, by: ControlCause, options: ForkOptions): Promise<ControlAnswer> {
    return this.#one(workflowId, 'fork', by, (workflow, act) => fork(this.#db, workflow, act, options));
  }

  delete(workflowIds: readonly string[], by: ControlCause, options: DeleteOptions): Promise<readonly ControlAnswer[]> {
    return this.#all(workflowIds, 'delete', by, (workflow, act) => deleteWorkflow(this.#db, workflow, act, options));
  }

  listWorkflows(query: WorkflowQuery): Promise<RecordPage<WorkflowRecord>> {
    return this.#calls.ask(() => listWorkflows(this.#db, query));
  }

  getWorkflow(workflowId: string, { payload }: { readonly payload: boolean }): Promise<WorkflowRecord | null> {
    return this.#calls.ask(() => getWorkflow(this.#db, workflowId, payload));
  }

  listSteps(workflowId: string, query: PageQuery & { readonly payload: boolean }): Promise<RecordPage<StepRow> | null> {
    return this.#calls.ask(() => listSteps(this.#db, workflowId, query));
  }

  listOwnership(workflowId: string, query: PageQuery): Promise<RecordPage<OwnershipRow> | null> {
    return this.#calls.ask(() => listOwnership(this.#db, workflowId, query));
  }

  listAudit(workflowId: string, query: PageQuery): Promise<RecordPage<AuditRow>> {
    return this.#calls.ask(() => listAudit(this.#db, workflowId, query));
  }

  unservedVersions(limit: number): Promise<readonly UnservedVersionRow[]> {
    return this.#calls.ask(() => unservedVersions(this.#db, limit));
  }

  skipCompensation(workflowId: string, by: ControlCause, options: SkipCompensationOptions): Promise<ControlAnswer> {
    return this.#one(workflowId, 'skip-compensation', by, (workflow, act) =>
      skipCompensation(this.#db, workflow, act, options),
    );
  }

  getRollback(workflowId: string): Promise<RollbackRow | null> {
    return this.#calls.ask(() => getRollback(this.#db, workflowId));
  }

  redeliverEvent(request: EventVerbRequest): Promise<'done' | 'unchanged' | 'missing'> {
    return this.#calls.ask(() => redeliverEvent(this.#db, request));
  }

  discardEvent(request: EventVerbRequest): Promise<'done' | 'missing'> {
    return this.#calls.ask(() => discardEvent(this.#db, request));
  }

  listEvents(query: EventQuery): Promise<RecordPage<EventRow>> {
    return this.#calls.ask(() => listEvents(this.#db, query));
  }

  listAttention(query: AttentionQuery): Promise<RecordPage<AttentionRow>> {
    return this.#calls.ask(() => listAttention(this.#db, query));
  }

  overview(limit: number): Promise<readonly OverviewRow[]> {
    return this.#calls.ask(() => overview(this.#db, limit));
  }

  close(): Promise<void> {
    return this.#calls.close(0);
  }

  /** One by one, in the order of their IDs; an ID that is there twice is one act. */
  async #all(
    workflowIds: readonly string[],
    verb: string,
    by: ControlCause,
    act: (workflow: Workflow, act: Act) => ControlAnswer,
  ): Promise<readonly ControlAnswer[]> {
    const answers = new Map<string, ControlAnswer>();
    for (const workflowId of [...new Set(workflowIds)].sort(compareBytes)) {
      answers.set(workflowId, await this.#one(workflowId, verb, by, act));
    }
    return workflowIds.flatMap((workflowId) => answers.get(workflowId) ?? []);
  }

  #one(
    workflowId: string,
    verb: string,
    { actor, reason }: ControlCause,
    apply: (workflow: Workflow, act: Act) => ControlAnswer,
  ): Promise<ControlAnswer> {
    const act: Act = { auditId: this.#calls.newNonce(), verb, actor, reason };
    return this.#calls.ask(() => control(this.#db, workflowId, act, (workflow) => apply(workflow, act)));
  }
}
