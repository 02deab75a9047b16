import { DatabaseError } from '../../errors/database-errors.js';
import type { RefusalRow } from './refusal-row.js';
import type {
  ApartWrite,
  PendingCall,
  PendingEnqueue,
  PendingIntent,
  PendingStart,
  PendingStreamWrite,
  PendingSuspension,
  PendingWrite,
} from './pending-write.js';
import type { Denied, IntentAnswer, StartAnswer } from '../store.js';
import { CONFLICT_DELAYS_MS } from '../conflict-delays.js';
import type { WorkflowGroup } from './write-batch.js';

/** Delays between the tries of a write whose row is locked by somebody else: doubling from 1 ms up to this. */
const LONGEST_LOCKED_DELAY_MS = 100;
/**
 * Delays between the tries of a write that waits for somebody else's open transaction: doubling between these. Longer than
 * the wait itself (lock_timeout of start_batch and record_intent), which takes up a lane.
 */
const FIRST_HELD_UP_DELAY_MS = 25;
const LONGEST_HELD_UP_DELAY_MS = 500;

export type Answered =
  | { readonly kind: 'done' }
  /** These writes of the workflow have to be sent again. */
  | { readonly kind: 'again'; readonly group: WorkflowGroup; readonly delayMs: number };

/**
 * Gives every write of a workflow its answer, or says which have to be sent again. Without a row in `refusals` a write is
 * recorded. This is where the answers of `classify_refusal` are acted on; what an execution does about them is the
 * engine's.
 */
export function settleGroup(group: WorkflowGroup, refusals: ReadonlyMap<PendingWrite, RefusalRow>): Answered {
  const { writes } = group;
  for (let index = 0; index < writes.length; index++) {
    const write = writes[index] as PendingWrite;
    const refusal = refusals.get(write);
    if (isApart(write)) {
      const again = settleApart(write, refusal);
      if (again !== undefined) return { kind: 'again', group, delayMs: again };
      continue;
    }
    if (write.kind === 'stream' && settleWithoutWrite(write, refusal)) continue;
    if (refusal === undefined) {
      if (write.kind === 'start') {
        const { workflowId, request } = write;
        write.answer({ kind: 'started', ownership: { workflowId, token: request.token, epoch: 1, recordVersion: 1 } });
      } else {
        write.ownership.recordVersion += 1;
        write.answer({ kind: 'written' });
      }
      continue;
    }
    const again = write.kind === 'start' ? settleStart(write, refusal) : settleDenied(write, refusal);
    if (again === undefined && refusal.answer === 'nondeterminism') continue;
    // What follows in the group was computed on a version that never came to be.
    const rest = again === undefined ? writes.slice(index + 1) : writes.slice(index);
    return rest.length === 0
      ? { kind: 'done' }
      : { kind: 'again', group: { ...group, writes: rest }, delayMs: again ?? 0 };
  }
  return { kind: 'done' };
}

/** Answers a write that the database refuses even alone. */
export function settleRefused(write: PendingWrite, error: unknown): void {
  const seq = seqOf(write);
  if (seq !== undefined && write.kind !== 'start' && isRecordedAlready(error)) {
    write.answer({ kind: 'nondeterminism', found: `an entry number ${String(seq)}` });
  } else {
    write.answer({ kind: 'refused', error: error instanceof Error ? error : new Error(String(error)) });
  }
}

/** The number under which the write records something in the history. */
function seqOf(write: PendingWrite): number | undefined {
  switch (write.kind) {
    case 'checkpoint':
      return write.step.seq;
    case 'intent':
      return write.intent.seq;
    case 'stream':
      return write.write.seq;
    case 'enqueue':
      return write.record.seq;
    case 'call':
      return write.call.seq;
    case 'start':
    case 'complete':
    case 'suspension':
      return undefined;
  }
}

/** Token and version were right, so it is this very execution that uses a number twice. */
function isRecordedAlready(error: unknown): boolean {
  return (
    error instanceof DatabaseError &&
    (error.constraint === 'step_result_pkey' || error.constraint === 'step_intent_pkey')
  );
}

/** Answers, or returns after how many milliseconds to try again. */
function settleStart(write: PendingStart, refusal: RefusalRow): number | undefined {
  const answer: StartAnswer | undefined =
    refusal.answer === 'exists'
      ? { kind: 'exists', name: refusal.found_detail ?? '', status: refusal.found_status ?? '' }
      : refusal.answer === 'lost'
        ? { kind: 'lost' }
        : undefined;
  if (answer === undefined) return lockedDelay(write);
  write.answer(answer);
  return undefined;
}

function isApart(write: PendingWrite): write is ApartWrite {
  return write.kind !== 'start' && write.kind !== 'checkpoint' && write.kind !== 'complete' && write.kind !== 'stream';
}

/** Answers, or returns after how many milliseconds to try again. Writes that travel apart have a row each. */
function settleApart(write: ApartWrite, row: RefusalRow | undefined): number | undefined {
  if (row === undefined) return lockedDelay(write);
  switch (write.kind) {
    case 'intent':
      return settleIntent(write, row);
    case 'enqueue':
      return settleEnqueue(write, row);
    case 'suspension':
      return settleSuspension(write, row);
    case 'call':
      return settleCall(write, row);
  }
}

function settleCall(write: PendingCall, row: RefusalRow): number | undefined {
  const answer = write.call.answerOf(row);
  if (answer === undefined) return settleDenied(write, row);
  if (row.answer === null) write.ownership.recordVersion += 1;
  write.answer(answer);
  return undefined;
}

function settleSuspension(write: PendingSuspension, row: RefusalRow): number | undefined {
  switch (row.answer) {
    case 'due':
    case 'busy':
      write.answer({ kind: 'not-now' });
      return undefined;
    case null:
      write.answer({ kind: 'suspended' });
      return undefined;
    default:
      return settleDenied(write, row);
  }
}

function settleIntent(write: PendingIntent, row: RefusalRow): number | undefined {
  if (row.answer === 'child_name_taken') {
    write.answer({ kind: 'child-name-taken', name: row.found_detail ?? '' });
    return undefined;
  }
  if (row.answer !== null) return settleDenied(write, row);
  const answer: IntentAnswer = { kind: 'written', remainingMs: row.remaining_ms ?? null, child: row.child ?? null };
  write.ownership.recordVersion += 1;
  write.answer(answer);
  return undefined;
}

function settleEnqueue(write: PendingEnqueue, row: RefusalRow): number | undefined {
  const detail = row.found_detail ?? '';
  switch (row.answer) {
    case 'child_name_taken':
      write.answer({ kind: 'child-name-taken', name: detail });
      return undefined;
    case 'no_queue':
      write.answer({ kind: 'no-queue', queue: detail });
      return undefined;
    case 'deduplicated':
      write.answer({ kind: 'deduplicated', holder: detail });
      return undefined;
    case null:
      write.ownership.recordVersion += 1;
      write.answer({ kind: 'written', childId: row.child_id ?? write.record.child.workflowId });
      return undefined;
    default:
      return settleDenied(write, row);
  }
}

/** An entry that was not to be written: it raised no version, and those that follow it in its group did not depend on it. */
function settleWithoutWrite(write: PendingStreamWrite, refusal: RefusalRow | undefined): boolean {
  switch (refusal?.answer) {
    case 'there':
      write.answer({ kind: 'written' });
      return true;
    case 'closed':
      write.answer({ kind: 'stream-closed' });
      return true;
    default:
      return false;
  }
}

function settleDenied(write: Exclude<PendingWrite, PendingStart>, refusal: RefusalRow): number | undefined {
  const denied = deny(write, refusal);
  if (typeof denied === 'number') return denied;
  write.answer(denied);
  return undefined;
}

function deny(write: Exclude<PendingWrite, PendingStart>, refusal: RefusalRow): Denied | number {
  switch (refusal.answer) {
    case 'missing':
      return { kind: 'missing' };
    case 'lost':
      return { kind: 'lost' };
    case 'nondeterminism':
      return { kind: 'nondeterminism', found: refusal.found_detail ?? '' };
    case 'conflict': {
      write.ownership.recordVersion = refusal.found_version ?? write.ownership.recordVersion;
      const delay = CONFLICT_DELAYS_MS[write.conflicts];
      write.conflicts += 1;
      return delay ?? { kind: 'conflict' };
    }
    default:
      return lockedDelay(write);
  }
}

/** After how many milliseconds to try a write again that was held up. */
export function heldUpDelay(write: PendingWrite): number {
  const delay = Math.min(LONGEST_HELD_UP_DELAY_MS, FIRST_HELD_UP_DELAY_MS * 2 ** write.locked);
  write.locked = Math.min(write.locked + 1, 10);
  return delay;
}

function lockedDelay(write: PendingWrite): number {
  const delay = Math.min(LONGEST_LOCKED_DELAY_MS, 2 ** write.locked);
  write.locked = Math.min(write.locked + 1, 10);
  return delay;
}
