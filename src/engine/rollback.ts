import { OutcomeUnknownError } from '../errors/step-errors.js';
import { RegistrationError } from '../errors/usage-errors.js';
import { WriteRefusedError } from '../errors/workflow-errors.js';
import type { PlannedCompensation, RollbackCause } from '../store/rollback-store.js';
import type { OutcomeRecord, RecordedStep, StepRecord } from '../store/store.js';
import { idempotencyKey } from './attempt-context.js';
import { compensationBody, type CompensationBody } from './compensation-body.js';
import { compensationKey, type Compensation } from './compensations.js';
import type { StepDefinition } from './definitions.js';
import { isDoubtful, isDoubtfulTransaction } from './doubtful.js';
import { encode } from './durable-calls.js';
import { elapsedSince } from './elapsed.js';
import * as why from './execution-errors.js';
import type { RunningExecution } from './execution-host.js';
import type { OpenCall } from './open-calls.js';
import type { Replay } from './replay.js';
import { encodeFailures } from './run-step.js';
import { runInScope } from './scope.js';
import { runAttempts, type StepEnd } from './step-attempts.js';
import { within } from './timer.js';
import type { TransactionDefinition } from './transaction-definition.js';
import { commitsElsewhere, lookUp } from './transaction-lookup.js';
import { findOut } from './unknown-outcome.js';

// A rollback is an execution of its own. It begins like every other, by replaying the workflow's function against the record; but
// what is not on record from before the marker is never answered, so that the code comes to rest where the workflow had come to, with
// everything in place that undoing needs: arguments, objects, registered functions. Then it runs the compensations.

/** What is on record of a workflow that is being rolled back. */
export interface RollbackRecord {
  readonly cause: RollbackCause;
  /** The outcome that it will have. */
  readonly outcome: OutcomeRecord;
  /** The number of the marker; compensations come after it. */
  readonly seq: number;
  /** What the code is told again: as it was when the rollback began. */
  readonly before: readonly RecordedStep[];
  /** All of it, by number. */
  readonly bySeq: ReadonlyMap<number, RecordedStep>;
}

/** Undefined: the workflow is not being rolled back. */
export function rollbackRecordOf(history: readonly RecordedStep[]): RollbackRecord | undefined {
  const marker = history.find(({ kind }) => kind === 'rollback');
  if (marker === undefined || marker.error === null) return undefined;
  const cause = marker.name as RollbackCause;
  const status = cause === 'cancelled' ? 'CANCELLED' : 'ERROR';
  return {
    cause,
    outcome: { status, output: null, error: marker.error, attention: null },
    seq: marker.seq,
    before: history.filter(({ seq }) => seq < marker.seq).map((step) => asBefore(step, marker.recordVersion)),
    bySeq: new Map(history.map((step) => [step.seq, step])),
  };
}

/** What has been found out of a step since then (a person may have recorded it) did not reach the code. */
function asBefore(step: RecordedStep, markerVersion: number): RecordedStep {
  const isLater = step.complete && step.recordVersion > markerVersion;
  return isLater ? { ...step, complete: false, output: null, error: null } : step;
}

/** How long code has to come to where it is known to come. Milliseconds. */
export const LATE_CODE_MS = 5_000;

/**
 * Brings the code where the workflow had come to, whatever it does then, and undoes what it has done. Returns the outcome; undefined:
 * the execution is over.
 */
export async function rollBack(
  execution: RunningExecution,
  record: RollbackRecord,
  replay: Pick<Replay, 'settled'>,
  run: () => unknown,
): Promise<OutcomeRecord | undefined> {
  const nothing = (): void => undefined;
  const ended = Promise.resolve().then(run).then(nothing, nothing);
  try {
    const left = await replay.settled(ended);
    if (left !== undefined) {
      const error = why.otherPath(execution.workflowId, left, 'the code does not ask for it');
      execution.block('NONDETERMINISM', error.message, error);
      return undefined;
    }
    // It failed then, so it is about to: what it still comes by on its way counts.
    if (record.cause === 'failed') await within(execution.runtime, ended, LATE_CODE_MS);
    return await runRollback(execution, record);
  } catch (error) {
    if (execution.isRunning) throw error;
    return undefined;
  }
}

/** The code has come to rest: runs what is still to be run. Returns the outcome; undefined: the workflow is blocked. */
async function runRollback(execution: RunningExecution, record: RollbackRecord): Promise<OutcomeRecord | undefined> {
  const plan = await planOf(execution, record);
  if (plan === undefined) return undefined;
  for (const { entry, compensation } of plan) {
    if (record.bySeq.get(entry.seq)?.complete === true) continue;
    const task = await taskOf(execution, record, compensation);
    if (task.kind === 'blocked') return undefined;
    const left = plan.filter((other) => other.entry.seq > entry.seq).length;
    const isDone = await (task.kind === 'nothing'
      ? recordDone(execution, entry, { attempts: 0, attemptErrors: null, elapsedMs: 0 })
      : run(execution, entry, task, left));
    if (!isDone) return undefined;
  }
  return leavesUnknown(record, plan) ? { ...record.outcome, attention: 'OUTCOME_UNKNOWN' } : record.outcome;
}

/** A step that nobody can undo, and of which nobody knows whether it happened, is left to a person. */
function leavesUnknown({ bySeq, seq: end }: RollbackRecord, plan: readonly Planned[]): boolean {
  const undone = new Set(plan.map(({ entry }) => entry.undoes));
  return [...bySeq.values()].some(
    ({ seq, kind, complete }) => seq < end && kind === 'step' && !complete && !undone.has(seq),
  );
}

interface Planned {
  readonly entry: PlannedCompensation;
  /** Undefined: what it was to undo has been found not to have happened, and is no longer on record. */
  readonly compensation: Compensation | undefined;
}

/**
 * What is to be run: what is on record, and after it, recorded first, what else the code says; usually one of the two is empty. Undefined:
 * the code says otherwise than the record, and the workflow is blocked.
 */
async function planOf(execution: RunningExecution, record: RollbackRecord): Promise<readonly Planned[] | undefined> {
  const { host, workflowId, ownership } = execution;
  const isPlanned = record.bySeq.has(record.seq + 1);
  const recorded = isPlanned ? await execution.write(host.store.readPlan(workflowId)) : [];
  execution.assertRunning();
  const found = [...execution.compensations.inReverse];
  const plan: Planned[] = [];
  for (const entry of recorded) {
    const [compensation] = found;
    if (compensation !== undefined && isOf(entry, compensation)) {
      plan.push({ entry, compensation });
      found.shift();
    } else if (entry.undoes !== null && !record.bySeq.has(entry.undoes)) {
      plan.push({ entry, compensation: undefined });
    } else {
      const comes = compensation === undefined ? 'to no more' : `to that of "${compensation.name}"`;
      const error = why.otherRollback(workflowId, entry, `the code comes ${comes} there`);
      execution.block('NONDETERMINISM', error.message, error);
      return undefined;
    }
  }
  const first = record.seq + 1 + recorded.length;
  const added = found.map((compensation, index) => ({
    entry: {
      seq: first + index,
      name: compensation.name,
      undoes: compensation.kind === 'step' ? compensation.seq : null,
    },
    compensation,
  }));
  if (added.length > 0) {
    const written = host.store.planRollback(
      ownership,
      added.map(({ entry }) => entry),
    );
    const answer = await execution.write(written);
    if (answer.kind === 'refused') {
      blockRefused(execution, 'the plan of a rollback', answer.error);
      return undefined;
    }
    if (answer.kind !== 'written') execution.denied(answer);
    await execution.progress();
  }
  return [...plan, ...added];
}

function isOf({ name, undoes }: PlannedCompensation, compensation: Compensation): boolean {
  return name === compensation.name && undoes === (compensation.kind === 'step' ? compensation.seq : null);
}

type Task =
  | {
      readonly kind: 'run';
      readonly body: CompensationBody;
      readonly self: unknown;
      readonly args: readonly unknown[];
      readonly key: string;
    }
  /** It has not happened. */
  | { readonly kind: 'nothing' }
  | { readonly kind: 'blocked' };

async function taskOf(
  execution: RunningExecution,
  record: RollbackRecord,
  compensation: Compensation | undefined,
): Promise<Task> {
  if (compensation === undefined) return { kind: 'nothing' };
  const key = compensationKey(execution.workflowId, compensation);
  if (compensation.kind === 'function') return { kind: 'run', body: compensation.body, self: undefined, args: [], key };
  const { definition, self, args } = compensation;
  const found = await resultOf(execution, record, compensation);
  if (found.kind !== 'happened') return found;
  try {
    const body = compensationBody(definition.compensate, definition.name, self);
    return { kind: 'run', body, self, args: [found.result, ...args], key };
  } catch (error) {
    if (!(error instanceof RegistrationError)) throw error;
    execution.block(error.code, error.message, error);
    return { kind: 'blocked' };
  }
}

type StepResult = { readonly kind: 'happened'; readonly result: unknown } | Exclude<Task, { readonly kind: 'run' }>;

/** What a step has brought, by its record; where that does not say, by its `reconcile`, else by nobody. */
async function resultOf(
  execution: RunningExecution,
  record: RollbackRecord,
  { definition, seq, self, args }: Extract<Compensation, { readonly kind: 'step' }>,
): Promise<StepResult> {
  // A cancel could not know of calls without a record: the marker, and what comes after it, may have their numbers.
  const step = seq < record.seq ? record.bySeq.get(seq) : undefined;
  if (step === undefined && commitsElsewhere(execution, definition)) {
    return resultElsewhere(execution, definition, seq);
  }
  // One without an attempt was skipped by hand.
  if (step === undefined || (step.complete && step.attempts === 0)) return { kind: 'nothing' };
  const { serializer } = execution.host;
  if (step.output !== null) return { kind: 'happened', result: await serializer.decode(step.output) };
  const error: unknown = step.error === null ? undefined : await serializer.decode(step.error);
  if (step.complete && !isDoubtful(error)) return { kind: 'nothing' };
  if (definition.kind === 'transaction' && !isDoubtfulTransaction(error)) {
    return commitsElsewhere(execution, definition) ? resultElsewhere(execution, definition, seq) : { kind: 'nothing' };
  }
  if (definition.reconcile === undefined) return blockUnknown(execution, definition, step, error);
  const open: OpenCall = { reject: nobody };
  const found = await findOut({ execution, open, definition, seq, self, args }, error, Math.max(step.attempts, 1));
  return found.kind === 'happened' ? { kind: 'happened', result: found.value } : { kind: 'nothing' };
}

/** A transaction in another database may have committed, and its record not have followed. */
async function resultElsewhere(
  execution: RunningExecution,
  definition: TransactionDefinition,
  seq: number,
): Promise<StepResult> {
  const found = await lookUp(execution, definition, seq);
  switch (found.kind) {
    case 'decided':
      if (found.record.output === null) return { kind: 'nothing' };
      return { kind: 'happened', result: await execution.host.serializer.decode(found.record.output) };
    case 'nothing':
      return found;
    case 'failed':
      execution.block('DATA_SOURCE_INVALID', why.NOT_DECIDED, why.asError(found.error));
      return { kind: 'blocked' };
    default:
      return execution.denied(found);
  }
}

async function run(
  execution: RunningExecution,
  entry: PlannedCompensation,
  { body, self, args, key }: Extract<Task, { readonly kind: 'run' }>,
  left: number,
): Promise<boolean> {
  const startedAt = execution.runtime.now();
  const end = await runAttempts(body, entry.seq, {
    workflowId: execution.workflowId,
    runtime: execution.runtime,
    idempotencyKey: key,
    onGone: (callback) => execution.onGone(callback),
    get isRunning() {
      return execution.isRunning;
    },
    mayRunBody: () => execution.mayRunBody(),
    runBody: (attempt, { limit }) =>
      limit(runInScope({ execution, step: attempt }, () => body.body.apply(self, [...args]))),
    // Run until it succeeds, under one key: whether a failed attempt has had its effect makes no difference.
    whatHappened: () => undefined,
  });
  execution.assertRunning();
  if (end.kind === 'value') {
    const attemptErrors = await encodeFailures(execution, end.failures);
    const { attempts, events } = end;
    return recordDone(execution, entry, {
      attempts,
      attemptErrors,
      events,
      elapsedMs: elapsedSince(execution.runtime, startedAt),
    });
  }
  await fail(execution, entry, end, left);
  return false;
}

async function recordDone(
  execution: RunningExecution,
  { seq, name }: PlannedCompensation,
  how: Pick<StepRecord, 'attempts' | 'attemptErrors' | 'elapsedMs' | 'events'>,
): Promise<boolean> {
  const output = await encode(execution, undefined);
  const refused = await execution.checkpoint({
    seq,
    name,
    kind: 'compensation',
    output,
    error: null,
    childId: null,
    ...how,
  });
  if (refused === undefined) return true;
  blockRefused(execution, `the end of the compensation of "${name}"`, refused);
  return false;
}

/** The rollback stops here: what it was to undo next may be what this one has to come before. */
async function fail(
  execution: RunningExecution,
  { seq, name }: PlannedCompensation,
  { error, attempts }: Extract<StepEnd, { readonly kind: 'error' }>,
  left: number,
): Promise<void> {
  const { host, workflowId, ownership } = execution;
  host.logger.error('A compensation failed for good.', { workflowId, compensation: name, seq, attempts });
  const encoded = await host.serializer.encodeError(error);
  execution.assertRunning();
  const detail =
    `The compensation of "${name}" (number ${String(seq)}) failed for good after ${String(attempts)} attempts; ${String(left)} more are to come after it. ` +
    'admin.rollback lists them with the error. Mend it and resume, or undo it by hand, record that with admin.skipCompensation, and resume.';
  execution.block('COMPENSATION_FAILED', detail, why.asError(error), () =>
    host.store.failCompensation(ownership, { seq, error: encoded, detail }),
  );
}

function blockUnknown(
  execution: RunningExecution,
  { name }: StepDefinition,
  { seq, complete }: RecordedStep,
  cause: unknown,
): StepResult {
  const key = idempotencyKey(execution.workflowId, seq, name);
  const detail =
    `Step "${name}" (number ${String(seq)}, idempotency key ${key}) is to be undone, but nobody knows whether it happened: it has no "reconcile" to ask. ` +
    // The workflow has gone on from a recorded error, which therefore never changes.
    (complete
      ? 'Find out; undo it by hand if it happened; record with admin.skipCompensation that this is done. '
      : 'Find out, and record it with admin.repairStep; or undo it by hand and record that with admin.skipCompensation. ') +
    'Then resume the workflow.';
  const error = new OutcomeUnknownError(detail, cause === undefined ? {} : { cause: why.asError(cause) });
  execution.block('OUTCOME_UNKNOWN', detail, error);
  return { kind: 'blocked' };
}

function blockRefused(execution: RunningExecution, what: string, cause: Error): void {
  const error = new WriteRefusedError(`The database refuses ${what}.`, { cause });
  execution.block('WRITE_REFUSED', error.message, error);
}

/** Nobody waits for a step that is only asked about. */
function nobody(): void {
  return undefined;
}
