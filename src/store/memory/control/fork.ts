import type { ControlAnswer, ForkOptions } from '../../admin-store.js';
import { UPDATE_PREFIX } from '../../update-prefix.js';
import { isWorkflowId, refusal } from '../constraints.js';
import type { MemoryDatabase } from '../memory-database.js';
import { markerOf } from '../rollback.js';
import { newWorkflow, type IntentRow, type ResultRow, type Workflow } from '../tables.js';
import { addAudit, type Act } from './audit.js';
import { refusedStep } from './rewind.js';

/** Makes a new workflow that goes on from a step of this one; see fork_workflow. */
export function fork(
  db: MemoryDatabase,
  source: Workflow,
  act: Act,
  { fromStep, workflowId: newId, appVersion }: ForkOptions,
): ControlAnswer {
  const { workflowId, status } = source;
  // A rollback is not copied: what it undoes must not be undone once more.
  const refused = refusedStep(source, fromStep, markerOf(source)?.seq);
  if (refused !== undefined) return { kind: 'refused', refusal: refused, status };
  if (db.workflows.has(newId)) return { kind: 'refused', refusal: { kind: 'exists' }, status };
  if (!isWorkflowId(newId)) return { kind: 'failed', error: refusal('workflow_id_length').error };

  const copied = recordBefore(source, fromStep);
  const copy = copyOf(db, source, { newId, appVersion: appVersion ?? source.appVersion, nonce: act.auditId });
  copyEarlierEvents(source, copy);
  copied.forEach((entry, index) => copyEntry(source, copy, entry, index + 1));
  copy.recordVersion = copied.length + 1;
  copyStreams(source, copy, fromStep);
  copyReceivedUpdates(source, copy, fromStep);
  db.workflows.set(newId, copy);

  addAudit(db, workflowId, { ...act, statusBefore: status, statusAfter: status, detail: { fromStep, to: newId } });
  const detail = { fromStep, from: workflowId };
  addAudit(db, newId, { ...act, statusBefore: null, statusAfter: 'ENQUEUED', detail });
  db.notify({ topic: 'work' });
  return { kind: 'done', statusBefore: status, statusAfter: status };
}

/** A workflow's record before a step, in the order in which it was recorded; see record_before. */
function recordBefore({ results, intents }: Workflow, step: number): (ResultRow | IntentRow)[] {
  const open = [...intents.values()].filter(({ seq }) => !results.has(seq));
  return [...results.values(), ...open]
    .filter(({ seq }) => seq < step)
    .sort((one, other) => one.recordVersion - other.recordVersion);
}

function copyOf(
  db: MemoryDatabase,
  source: Workflow,
  to: { readonly newId: string; readonly appVersion: string; readonly nonce: string },
): Workflow {
  const now = db.now();
  const { name, instance, maxAttempts, timeoutMs, attributes, queue, priority, partitionKey, firstSeq } = source;
  return newWorkflow({
    workflowId: to.newId,
    name,
    instance,
    status: 'ENQUEUED',
    recordVersion: 1,
    maxAttempts,
    appVersion: to.appVersion,
    timeoutMs,
    deadline: queue === null && timeoutMs !== null ? now + timeoutMs : null,
    attributes,
    forkedFrom: source.workflowId,
    queue,
    priority,
    partitionKey,
    queuedAt: now,
    firstSeq,
    schedule: source.schedule === null ? null : { ...source.schedule, cause: 'fork' },
    createdAt: now,
    input: { text: source.input.text, nonce: to.nonce },
  });
}

/** No execution of the new workflow wrote it. */
function copyEntry(source: Workflow, copy: Workflow, entry: ResultRow | IntentRow, recordVersion: number): void {
  const { seq } = entry;
  if (!('output' in entry)) {
    // A step of which nobody knows what became of it is the source's: the fork runs it itself, under a key of its own.
    if (entry.kind !== 'step') copy.intents.set(seq, { ...entry, recordVersion, epoch: 0 });
    return;
  }
  copy.results.set(seq, { ...entry, recordVersion, epoch: 0 });
  const event = source.events.find((candidate) => candidate.seq === seq);
  if (event !== undefined) copy.events.push({ ...event, recordVersion });
}

/** The last values of earlier runs, of which there is no record. */
function copyEarlierEvents(source: Workflow, copy: Workflow): void {
  const earlier = source.events.filter(({ seq }) => seq < source.firstSeq);
  const last = new Map(earlier.map((event) => [event.key, event]));
  copy.events.push(...[...last.values()].map((event) => ({ ...event, recordVersion: 0 })));
}

/** As far as earlier runs and the copied results have written them. */
function copyStreams(source: Workflow, copy: Workflow, fromStep: number): void {
  for (const [stream, entries] of source.streams) {
    const kept = entries.filter(({ seq }) => seq < fromStep && (seq < source.firstSeq || source.results.has(seq)));
    if (kept.length > 0)
      copy.streams.set(
        stream,
        kept.map((entry) => ({ ...entry, epoch: 0 })),
      );
  }
}

/** Asked for again under the same ID, an update that is on record is not carried out a second time. */
function copyReceivedUpdates(source: Workflow, copy: Workflow, fromStep: number): void {
  for (const message of source.messages.values()) {
    const isReceived = message.consumedSeq !== null && message.consumedSeq < fromStep;
    if (isReceived && message.topic.startsWith(UPDATE_PREFIX)) copy.messages.set(message.messageId, { ...message });
  }
}
