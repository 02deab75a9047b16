import type { EnqueueAnswer } from '../queue-store.js';
import type { EnqueueRequest, Refused } from '../store.js';
import { isWorkflowId, refusal } from './constraints.js';
import { cancelTree } from './control/cancel-tree.js';
import { dropDebounce, dropDeduplication, takeDebounce, takeDeduplication } from './deduplication.js';
import type { MemoryDatabase } from './memory-database.js';
import { raiseVersion } from './record-result.js';
import { newWorkflow, type Workflow } from './tables.js';

/** Of one enqueue. */
interface Origin {
  readonly nonce: string;
  /** The workflow that enqueues it, and how they belong together. */
  readonly parent: Workflow['parent'];
}

/** Enqueues a workflow; see enqueue_items, of which this does one item. */
export function enqueue(db: MemoryDatabase, request: EnqueueRequest, origin: Origin): EnqueueAnswer {
  const { queue, workflowId } = request;
  // An earlier try of this call has: let it be, whatever has become of it, its queue and its deduplication ID since.
  if (db.workflows.get(workflowId)?.input.nonce === origin.nonce) return { kind: 'enqueued' };
  if (queue !== null && !db.queues.has(queue)) return { kind: 'no-queue', queue };
  const invalid = invalidity(request);
  if (invalid !== undefined) return invalid;
  const deduplication = deduplicate(db, request, origin.nonce);
  const debounce = request.debounce === null ? undefined : debounced(db, request, request.debounce, origin.nonce);
  const answer = answerOf(db, request, origin, deduplication.holder, debounce?.holder ?? null);
  if (answer.kind === 'enqueued') {
    if (!db.workflows.has(workflowId)) db.workflows.set(workflowId, waiting(db, request, origin));
    return answer;
  }
  // Taken for a workflow that is not enqueued after all.
  if (deduplication.took) dropDeduplication(db, queue ?? '', request.deduplication?.id ?? '');
  if (debounce?.took === true) dropDebounce(db, queue ?? '', request.name, request.debounce?.key ?? '');
  return answer;
}

function invalidity({ workflowId }: EnqueueRequest): Refused | undefined {
  return isWorkflowId(workflowId) ? undefined : refusal('workflow_id_length');
}

function answerOf(
  db: MemoryDatabase,
  { workflowId }: EnqueueRequest,
  { nonce }: Origin,
  holder: string | null,
  target: string | null,
): EnqueueAnswer {
  if (holder !== null) return { kind: 'deduplicated', holder };
  if (target !== null) return { kind: 'debounced', workflowId: target };
  const known = db.workflows.get(workflowId);
  if (known === undefined || known.input.nonce === nonce) return { kind: 'enqueued' };
  return { kind: 'exists', name: known.name };
}

function deduplicate(
  db: MemoryDatabase,
  { queue, workflowId, deduplication }: EnqueueRequest,
  nonce: string,
): { readonly holder: string | null; readonly took: boolean } {
  if (deduplication === null) return { holder: null, took: false };
  const { id: deduplicationId, windowMs, cancelledError } = deduplication;
  const heldUntil = windowMs === null ? null : db.now() + windowMs;
  const wanted = { queue: queue ?? '', deduplicationId, workflowId, heldUntil };
  const taken = takeDeduplication(db, wanted);
  if (taken.holder === null || cancelledError === null) return taken;
  const act = { auditId: nonce, verb: 'cancel', actor: 'enqueue', reason: 'A newer workflow takes its place.' };
  cancelTree(db, [taken.holder], { act, error: cancelledError, children: 'cancel' });
  return takeDeduplication(db, wanted);
}

/** What a debounced call goes to: its workflow has what the last call gave it. */
function debounced(
  db: MemoryDatabase,
  request: EnqueueRequest,
  { key, maxWaitMs }: NonNullable<EnqueueRequest['debounce']>,
  nonce: string,
): { readonly holder: string | null; readonly took: boolean } {
  const { queue, name, workflowId } = request;
  const taken = takeDebounce(db, { queue: queue ?? '', name, debounceKey: key, workflowId }, nonce);
  const workflow = taken.isOpen && taken.holder !== null ? db.workflows.get(taken.holder) : undefined;
  if (workflow === undefined) return taken;
  raiseVersion(db, workflow);
  workflow.instance = request.instance;
  workflow.maxAttempts = request.maxAttempts;
  workflow.timeoutMs = request.timeoutMs;
  workflow.attributes = request.attributes;
  workflow.priority = request.priority;
  workflow.partitionKey = request.key ?? '';
  workflow.input = { text: request.input, nonce };
  if (workflow.status === 'DELAYED') {
    // What is due already is not pushed back: it is in line.
    const dueAt = Math.min(db.now() + request.delayMs, maxWaitMs === null ? Infinity : taken.firstAt + maxWaitMs);
    workflow.wakeAt = dueAt;
    workflow.queuedAt = dueAt;
  }
  return taken;
}

function waiting(db: MemoryDatabase, request: EnqueueRequest, { nonce, parent }: Origin): Workflow {
  const now = db.now();
  const { delayMs, debounce, deduplication } = request;
  const dueAt = now + Math.min(delayMs, debounce?.maxWaitMs ?? Infinity);
  return newWorkflow({
    workflowId: request.workflowId,
    name: request.name,
    instance: request.instance,
    status: delayMs > 0 ? 'DELAYED' : 'ENQUEUED',
    recordVersion: 1,
    maxAttempts: request.maxAttempts,
    timeoutMs: request.timeoutMs,
    wakeAt: delayMs > 0 ? dueAt : null,
    attributes: request.attributes,
    parent,
    queue: request.queue,
    priority: request.priority,
    partitionKey: request.key ?? '',
    queuedAt: dueAt,
    deduplicationId: deduplication?.windowMs === null ? deduplication.id : null,
    createdAt: now,
    input: { text: request.input, nonce },
  });
}
