import type { MemoryDatabase } from './memory-database.js';
import { isTerminal, type DebounceRow, type DeduplicationRow, type Workflow } from './tables.js';

/** How long ago an ID must have been looked at for the sweep to look at it again, in milliseconds. */
const SWEPT_AFTER_MS = 60_000;

interface Taken {
  /** Whoever has it already; null: the workflow has it now. */
  readonly holder: string | null;
  readonly took: boolean;
}

/** Takes a deduplication ID for a workflow that is about to be enqueued; see take_deduplication. */
export function takeDeduplication(
  db: MemoryDatabase,
  wanted: Pick<DeduplicationRow, 'queue' | 'deduplicationId' | 'workflowId' | 'heldUntil'>,
): Taken {
  const key = keyOf(wanted.queue, wanted.deduplicationId);
  const held = db.deduplications.get(key);
  if (held !== undefined) {
    if (held.workflowId === wanted.workflowId) return { holder: null, took: false };
    if (isHeld(db, held)) return { holder: held.workflowId, took: false };
  }
  db.deduplications.set(key, { ...wanted, checkedAt: db.now() });
  return { holder: null, took: true };
}

export function dropDeduplication(db: MemoryDatabase, queue: string, deduplicationId: string): void {
  db.deduplications.delete(keyOf(queue, deduplicationId));
}

/** Workflows that run again take their IDs again, unless another one has them; see retake_deduplication. */
export function retakeDeduplication(db: MemoryDatabase, workflow: Workflow): void {
  if (workflow.deduplicationId === null) return;
  const queue = workflow.queue ?? '';
  const key = keyOf(queue, workflow.deduplicationId);
  const held = db.deduplications.get(key);
  if (held !== undefined) {
    const holder = db.workflows.get(held.workflowId);
    if (held.heldUntil !== null || holder === undefined || !isTerminal(holder.status)) return;
  }
  const { deduplicationId, workflowId } = workflow;
  db.deduplications.set(key, { queue, deduplicationId, workflowId, heldUntil: null, checkedAt: db.now() });
}

interface TakenDebounce extends Taken {
  /** It waits, and no execution has owned it: it gets what the call gives it. */
  readonly isOpen: boolean;
  readonly firstAt: number;
}

/** Finds the workflow that the calls of one debounce key go to, or makes it the given one; see take_debounce. */
export function takeDebounce(
  db: MemoryDatabase,
  wanted: Pick<DebounceRow, 'queue' | 'name' | 'debounceKey' | 'workflowId'>,
  nonce: string,
): TakenDebounce {
  const now = db.now();
  const key = keyOf(wanted.queue, wanted.name, wanted.debounceKey);
  const held = db.debounces.get(key);
  if (held !== undefined) {
    const holder = db.workflows.get(held.workflowId);
    const { workflowId, firstAt } = held;
    if (holder?.input.nonce === nonce) return { holder: workflowId, took: false, isOpen: false, firstAt };
    if (isOpen(holder)) return { holder: workflowId, took: false, isOpen: true, firstAt };
  }
  db.debounces.set(key, { ...wanted, firstAt: now, checkedAt: now });
  return { holder: null, took: true, isOpen: false, firstAt: now };
}

export function dropDebounce(db: MemoryDatabase, queue: string, name: string, debounceKey: string): void {
  db.debounces.delete(keyOf(queue, name, debounceKey));
}

/** What a deleted workflow held. */
export function dropHeldBy(db: MemoryDatabase, workflowId: string): void {
  for (const table of [db.deduplications, db.debounces]) {
    for (const [key, row] of table) {
      if (row.workflowId === workflowId) table.delete(key);
    }
  }
}

/** Clears what nobody holds any more, up to `limit` of each; see clear_deduplication. */
export function clearDeduplication(db: MemoryDatabase, limit: number): void {
  sweep(db, db.deduplications, limit, (row) => isHeld(db, row));
  sweep(db, db.debounces, limit, (row) => isOpen(db.workflows.get(row.workflowId)));
}

function sweep<Row extends { checkedAt: number }>(
  db: MemoryDatabase,
  table: Map<string, Row>,
  limit: number,
  isKept: (row: Row) => boolean,
): void {
  const now = db.now();
  const looked = [...table]
    .filter(([, { checkedAt }]) => checkedAt < now - SWEPT_AFTER_MS)
    .sort(([, one], [, other]) => one.checkedAt - other.checkedAt);
  for (const [key, row] of looked.slice(0, limit)) {
    if (isKept(row)) row.checkedAt = now;
    else table.delete(key);
  }
}

/** Until its time has passed or, without one, until its workflow is terminal or gone. */
function isHeld(db: MemoryDatabase, { heldUntil, workflowId }: DeduplicationRow): boolean {
  if (heldUntil !== null) return heldUntil > db.now();
  const holder = db.workflows.get(workflowId);
  return holder !== undefined && !isTerminal(holder.status);
}

function isOpen(workflow: Workflow | undefined): boolean {
  return workflow?.epoch === 0 && (workflow.status === 'DELAYED' || workflow.status === 'ENQUEUED');
}

function keyOf(...parts: readonly string[]): string {
  return JSON.stringify(parts);
}
