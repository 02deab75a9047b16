import { notFound } from '../engine/not-found.js';
import { checkWorkflowId } from '../engine/workflow-id.js';
import type { Runtime } from '../runtime/runtime.js';
import type { AdminStore, ControlAnswer, ControlCause, WorkflowQuery } from '../store/admin-store.js';
import type {
  AttentionEntry,
  AuditDetails,
  BulkResult,
  ControlResult,
  FleetOverview,
  ForkResult,
  OwnershipDetails,
  Page,
  RollbackDetails,
  StepDetails,
  UnservedVersion,
  WorkflowDetails,
} from './admin-answers.js';
import type { AdminOperations, OutboxAdminOperations } from './admin-api.js';
import type {
  AttentionFilter,
  CancelRequest,
  ControlRequest,
  DeleteRequest,
  ForkRequest,
  PageRequest,
  PrioritizeRequest,
  RepairRequest,
  RewindRequest,
  SetAppVersionRequest,
  SkipCompensationRequest,
  WorkflowFilter,
} from './admin-requests.js';
import { parseArgument, SCHEMAS } from './arguments.js';
import { type ControlVerb, resultOf } from './control-result.js';
import { fleetOverview } from './fleet-overview.js';
import { repairRecord, type ValueWriter } from './step-repair.js';
import { attentionGuide } from './attention-guide.js';
import { OutboxAdmin } from './outbox-admin.js';
import { auditDetails, rollbackDetails, stepDetails, type ValueReader, workflowDetails } from './details.js';

/** What an {@link Admin} is made of. */
export interface AdminParts extends ValueReader, ValueWriter {
  readonly runtime: Runtime;
  /** Stays the caller's to close. */
  readonly store: AdminStore;
  /** The stored form of the error that cancelled workflows end with. */
  readonly cancelledError: string;
}

/** Where a step number that cannot exist is cut off: PostgreSQL's largest integer. */
const LARGEST_STEP = 2 ** 31 - 1;

/** Workflows at which counting stops. */
const MOST_COUNTED = 10_000;

/** {@link AdminOperations} on an {@link AdminStore}. */
export class Admin implements AdminOperations {
  /** Lists events of the outbox, and decides about the dead. */
  readonly outbox: OutboxAdminOperations;
  readonly #parts: AdminParts;

  constructor(parts: AdminParts) {
    this.#parts = parts;
    this.outbox = new OutboxAdmin(parts);
  }

  cancel(workflowId: string, options?: CancelRequest): Promise<ControlResult>;
  cancel(workflowIds: readonly string[], options?: CancelRequest): Promise<readonly BulkResult[]>;
  async cancel(target: Target, options: CancelRequest = {}): Promise<ControlResult | readonly BulkResult[]> {
    const { children, compensate, ...by } = parseArgument(SCHEMAS.cancel, options, 'The options of cancel');
    return this.#control('cancel', target, (ids) =>
      this.#parts.store.cancel(ids, causeOf(by), { children, compensate, error: this.#parts.cancelledError }),
    );
  }

  resume(workflowId: string, options?: ControlRequest): Promise<ControlResult>;
  resume(workflowIds: readonly string[], options?: ControlRequest): Promise<readonly BulkResult[]>;
  async resume(target: Target, options: ControlRequest = {}): Promise<ControlResult | readonly BulkResult[]> {
    const by = parseArgument(SCHEMAS.control, options, 'The options of resume');
    return this.#control('resume', target, (ids) => this.#parts.store.resume(ids, causeOf(by)));
  }

  async prioritize(workflowId: string, options: PrioritizeRequest): Promise<ControlResult> {
    const { priority, ...by } = parseArgument(SCHEMAS.prioritize, options, 'The options of prioritize');
    checkWorkflowId(workflowId);
    return resultOf('prioritize', workflowId, await this.#parts.store.prioritize(workflowId, causeOf(by), priority));
  }

  setAppVersion(workflowId: string, options: SetAppVersionRequest): Promise<ControlResult>;
  setAppVersion(workflowIds: readonly string[], options: SetAppVersionRequest): Promise<readonly BulkResult[]>;
  async setAppVersion(target: Target, options: SetAppVersionRequest): Promise<ControlResult | readonly BulkResult[]> {
    const { appVersion, ...by } = parseArgument(SCHEMAS.setAppVersion, options, 'The options of setAppVersion');
    return this.#control('setAppVersion', target, (ids) =>
      this.#parts.store.setAppVersion(ids, causeOf(by), appVersion),
    );
  }

  async skipCompensation(workflowId: string, options: SkipCompensationRequest): Promise<ControlResult> {
    const { seq, ...by } = parseArgument(SCHEMAS.skipCompensation, options, 'The options of skipCompensation');
    checkWorkflowId(workflowId);
    const request = { seq: storable(seq), output: await this.#parts.encode(undefined) };
    const answer = await this.#parts.store.skipCompensation(workflowId, causeOf(by), request);
    return resultOf('skipCompensation', workflowId, answer);
  }

  async rewind(workflowId: string, options: RewindRequest): Promise<ControlResult> {
    const { toStep, ...by } = parseArgument(SCHEMAS.rewind, options, 'The options of rewind');
    checkWorkflowId(workflowId);
    const request = { toStep: storable(toStep), childError: this.#parts.cancelledError };
    return resultOf('rewind', workflowId, await this.#parts.store.rewind(workflowId, causeOf(by), request));
  }

  async repairStep(workflowId: string, options: RepairRequest): Promise<ControlResult> {
    const { seq, repair, resume, ...by } = parseArgument(SCHEMAS.repair, options, 'The options of repairStep');
    checkWorkflowId(workflowId);
    const record = await repairRecord(repair, this.#parts);
    const request = { ...record, seq: storable(seq), resume };
    return resultOf('repairStep', workflowId, await this.#parts.store.repairStep(workflowId, causeOf(by), request));
  }

  async fork(workflowId: string, options: ForkRequest): Promise<ForkResult> {
    const {
      fromStep,
      workflowId: newId,
      appVersion,
      ...by
    } = parseArgument(SCHEMAS.fork, options, 'The options of fork');
    checkWorkflowId(workflowId);
    const request = {
      fromStep: storable(fromStep),
      workflowId: newId === undefined ? this.#parts.runtime.sortableUuid() : checkWorkflowId(newId),
      appVersion: appVersion ?? null,
    };
    resultOf('fork', workflowId, await this.#parts.store.fork(workflowId, causeOf(by), request));
    return { workflowId: request.workflowId };
  }

  delete(workflowId: string, options?: DeleteRequest): Promise<ControlResult>;
  delete(workflowIds: readonly string[], options?: DeleteRequest): Promise<readonly BulkResult[]>;
  async delete(target: Target, options: DeleteRequest = {}): Promise<ControlResult | readonly BulkResult[]> {
    const { force, ...by } = parseArgument(SCHEMAS.delete, options, 'The options of delete');
    return this.#control('delete', target, (ids) =>
      this.#parts.store.delete(ids, causeOf(by), { force, childError: this.#parts.cancelledError }),
    );
  }

  async list(filter: WorkflowFilter = {}): Promise<Page<WorkflowDetails>> {
    const parsed = parseArgument(SCHEMAS.list, filter, 'The filter');
    const query: WorkflowQuery = {
      statuses: listOf(parsed.status),
      names: listOf(parsed.name),
      idPrefix: parsed.idPrefix ?? null,
      executorId: parsed.executorId ?? null,
      parentId: parsed.parentId ?? null,
      appVersion: parsed.appVersion ?? null,
      queue: parsed.queue ?? null,
      key: parsed.key ?? null,
      attention: parsed.attention ?? null,
      createdFrom: parsed.createdFrom ?? null,
      createdBefore: parsed.createdBefore ?? null,
      order: parsed.order,
      payload: parsed.payload,
      limit: parsed.limit,
      cursor: parsed.cursor ?? null,
    };
    const { items, nextCursor } = await this.#parts.store.listWorkflows(query);
    return { items: await Promise.all(items.map((record) => workflowDetails(record, this.#parts))), nextCursor };
  }

  async get(workflowId: string, options: { readonly payload?: boolean } = {}): Promise<WorkflowDetails> {
    const parsed = parseArgument(SCHEMAS.get, options, 'The options of get');
    const record = await this.#parts.store.getWorkflow(checkWorkflowId(workflowId), parsed);
    if (record === null) throw notFound(workflowId);
    return workflowDetails(record, this.#parts);
  }

  async steps(
    workflowId: string,
    options: PageRequest & { readonly payload?: boolean } = {},
  ): Promise<Page<StepDetails>> {
    const { limit, cursor = null, payload } = parseArgument(SCHEMAS.steps, options, 'The options of steps');
    const page = await this.#parts.store.listSteps(checkWorkflowId(workflowId), { limit, cursor, payload });
    if (page === null) throw notFound(workflowId);
    return {
      items: await Promise.all(page.items.map((row) => stepDetails(row, this.#parts))),
      nextCursor: page.nextCursor,
    };
  }

  async rollback(workflowId: string, options: { readonly payload?: boolean } = {}): Promise<RollbackDetails | null> {
    const { payload } = parseArgument(SCHEMAS.get, options, 'The options of rollback');
    const row = await this.#parts.store.getRollback(checkWorkflowId(workflowId));
    if (row !== null) return rollbackDetails(row, payload, this.#parts);
    await this.get(workflowId);
    return null;
  }

  async ownership(workflowId: string, options: PageRequest = {}): Promise<Page<OwnershipDetails>> {
    const { limit, cursor = null } = parseArgument(SCHEMAS.page, options, 'The options of ownership');
    const page = await this.#parts.store.listOwnership(checkWorkflowId(workflowId), { limit, cursor });
    if (page === null) throw notFound(workflowId);
    return page;
  }

  async audit(workflowId: string, options: PageRequest = {}): Promise<Page<AuditDetails>> {
    const { limit, cursor = null } = parseArgument(SCHEMAS.page, options, 'The options of audit');
    const { items, nextCursor } = await this.#parts.store.listAudit(checkWorkflowId(workflowId), { limit, cursor });
    return { items: items.map(auditDetails), nextCursor };
  }

  async attention(filter: AttentionFilter = {}): Promise<Page<AttentionEntry>> {
    const { limit, cursor = null, code } = parseArgument(SCHEMAS.attention, filter, 'The filter');
    const { items, nextCursor } = await this.#parts.store.listAttention({ limit, cursor, codes: listOf(code) });
    return { items: items.map((row) => ({ ...row, ...attentionGuide(row.code) })), nextCursor };
  }

  unservedVersions(): Promise<readonly UnservedVersion[]> {
    return this.#parts.store.unservedVersions(MOST_COUNTED);
  }

  async overview(): Promise<FleetOverview> {
    const { store } = this.#parts;
    const [rows, unservedVersions] = await Promise.all([store.overview(MOST_COUNTED), this.unservedVersions()]);
    return fleetOverview(rows, unservedVersions);
  }

  async #control(verb: ControlVerb, target: unknown, act: Act): Promise<ControlResult | readonly BulkResult[]> {
    if (!Array.isArray(target)) {
      const workflowId = checkWorkflowId(target);
      const [answer] = await act([workflowId]);
      if (answer === undefined) throw new TypeError(`The store did not answer ${verb}.`);
      return resultOf(verb, workflowId, answer);
    }
    const ids = parseArgument(SCHEMAS.ids, target, 'The list of workflow IDs');
    const outcomes = ids.map((id) => attempt(id, () => checkWorkflowId(id)));
    const valid = outcomes.filter((outcome) => outcome.ok).map((outcome) => outcome.value);
    const answers = valid.length === 0 ? [] : await act(valid);
    let next = 0;
    return outcomes.map((outcome): BulkResult => {
      if (!outcome.ok) return outcome;
      const workflowId = outcome.value;
      const answer = answers[next++];
      if (answer === undefined) throw new TypeError(`The store did not answer ${verb} for every ID.`);
      const result = attempt(workflowId, () => resultOf(verb, workflowId, answer));
      return result.ok ? { ok: true, ...result.value } : result;
    });
  }
}

type Target = string | readonly string[];
type Act = (workflowIds: readonly string[]) => Promise<readonly ControlAnswer[]>;

type Attempt<Value> =
  | { readonly ok: true; readonly value: Value }
  | { readonly ok: false; readonly workflowId: string; readonly error: Error };

/** An error of one ID becomes its result, so that the others have theirs. */
function attempt<Value>(workflowId: unknown, compute: () => Value): Attempt<Value> {
  try {
    return { ok: true, value: compute() };
  } catch (error) {
    const label = typeof workflowId === 'string' ? workflowId : typeof workflowId;
    return { ok: false, workflowId: label, error: error instanceof Error ? error : new Error(String(error)) };
  }
}

function causeOf({ actor, reason }: { readonly actor: string; readonly reason?: string | undefined }): ControlCause {
  return { actor, reason: reason ?? null };
}

/** Out of range stays out of range, and is refused there: how many steps there are is the record's to say. */
function storable(step: number): number {
  return Math.max(-1, Math.min(step, LARGEST_STEP));
}

function listOf<Item>(value: Item | readonly Item[] | undefined): readonly Item[] | null {
  if (value === undefined) return null;
  return Array.isArray(value) ? (value as readonly Item[]) : [value as Item];
}
