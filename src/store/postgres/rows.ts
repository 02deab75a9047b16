import type { SqlRow } from '../../drivers/driver.js';
import type {
  ClaimAnswer,
  ClaimedWorkflow,
  FoundEvent,
  FoundOutcome,
  RecordedStep,
  ScheduleTick,
  StepKind,
  TerminalStatus,
} from '../store.js';

export interface OutcomeRow extends SqlRow {
  readonly workflow_id: string;
  readonly status: TerminalStatus | null;
  readonly output: string | null;
  readonly error: string | null;
}

export interface ClaimRow extends SqlRow {
  readonly workflow_id: string;
  readonly name: string;
  readonly instance: string | null;
  readonly token: string;
  readonly epoch: number;
  readonly record_version: number;
  readonly attempts: number;
  readonly reason: 'recovered' | 'resumed' | 'claimed';
  readonly deadline_in_ms: number | null;
  readonly input: string | null;
  readonly first_seq: number;
  readonly has_history: boolean;
  /** JSON: the schedule whose run it is. */
  readonly report: string | null;
}

/** The last row of a claim: what waits in queues. */
export interface ClaimReportRow extends SqlRow {
  readonly workflow_id: null;
  /** JSON. */
  readonly report: string;
}

export interface HistoryRow extends SqlRow {
  readonly workflow_id: string;
  readonly seq: number;
  readonly name: string;
  readonly kind: StepKind;
  readonly complete: boolean;
  readonly output: string | null;
  readonly error: string | null;
  readonly attempts: number;
  readonly child_id: string | null;
  readonly remaining_ms: number | null;
  readonly record_version: number;
}

export interface EventRow extends SqlRow {
  /** Which event that was asked for, from 1. */
  readonly item: number;
  readonly answer: 'set' | 'ended' | 'missing';
  readonly value: string | null;
  readonly found_status: string | null;
}

export function toEvent(row: EventRow): FoundEvent {
  switch (row.answer) {
    case 'set':
      return { kind: 'set', value: row.value ?? '' };
    case 'ended':
      return { kind: 'ended', status: row.found_status ?? '' };
    case 'missing':
      return { kind: 'missing' };
  }
}

export function toOutcome(row: OutcomeRow): FoundOutcome {
  const { workflow_id: workflowId, status, output, error } = row;
  return status === null ? { kind: 'missing', workflowId } : { kind: 'outcome', workflowId, status, output, error };
}

/** Puts each workflow's history, which comes sorted, beside its claim. */
export function toClaimed(rows: readonly ClaimRow[], history: readonly HistoryRow[]): ClaimedWorkflow[] {
  const steps = new Map<string, RecordedStep[]>();
  for (const row of history) {
    let list = steps.get(row.workflow_id);
    if (list === undefined) {
      list = [];
      steps.set(row.workflow_id, list);
    }
    list.push({
      seq: row.seq,
      name: row.name,
      kind: row.kind,
      complete: row.complete,
      output: row.output,
      error: row.error,
      attempts: row.attempts,
      childId: row.child_id,
      remainingMs: row.remaining_ms,
      recordVersion: row.record_version,
    });
  }
  return rows.map((row) => ({
    ownership: {
      workflowId: row.workflow_id,
      token: row.token,
      epoch: row.epoch,
      recordVersion: row.record_version,
    },
    name: row.name,
    instance: row.instance,
    attempts: row.attempts,
    reason: row.reason,
    deadlineInMs: row.deadline_in_ms,
    input: row.input ?? '',
    firstSeq: row.first_seq,
    history: steps.get(row.workflow_id) ?? [],
    schedule: toScheduleTick(row.report),
  }));
}

function toScheduleTick(report: string | null): ScheduleTick | undefined {
  if (report === null) return undefined;
  const { schedule, scheduledMs } = JSON.parse(report) as { readonly schedule: string; readonly scheduledMs: number };
  return { name: schedule, scheduledAt: new Date(scheduledMs) };
}

/** What the report says; without one, nothing waits in queues. */
export function toReport(row: ClaimReportRow | undefined): Omit<ClaimAnswer, 'workflows'> {
  if (row === undefined) return { isLimited: false, againInMs: null, isSoon: false, turns: null };
  const { limited, againInMs, soon, turns } = JSON.parse(row.report) as {
    readonly limited: boolean;
    readonly againInMs: number | null;
    readonly soon: boolean;
    readonly turns: unknown;
  };
  return { isLimited: limited, againInMs, isSoon: soon, turns: JSON.stringify(turns) };
}
