import type { StreamPage, StreamPosition, StreamWrite, StreamWriteAnswer } from '../stream-store.js';
import { isStreamKey } from './constraints.js';
import type { MemoryDatabase } from './memory-database.js';
import {
  owned,
  refused,
  unacceptable,
  unwritten,
  usedTwice,
  written,
  type OwnershipCheck,
  type Tried,
} from './ownership-check.js';
import { addResult, raiseVersion } from './record-result.js';
import { isTerminal, type StreamRow, type Workflow } from './tables.js';

/** Writes an entry of a stream, or closes it; see stream_batch. */
export function writeStream(db: MemoryDatabase, check: OwnershipCheck, write: StreamWrite): Tried<StreamWriteAnswer> {
  const { stream, seq, by } = write;
  const workflow = owned(db, check);
  if (workflow === undefined) return refusedEntry(db, check, write);
  if (!isStreamKey(stream)) return unacceptable('stream_key_length');
  const isClosed = isClosedStream(workflow, stream);
  if (isWrittenPlace(workflow, write)) return unwritten({ kind: 'written' });
  if (isClosed && by.kind !== 'stream-close') return unwritten({ kind: 'stream-closed' });
  if (by.kind !== 'attempt' && workflow.results.has(seq)) return usedTwice(seq);
  if (!isClosed) addEntry(db, workflow, check.nonce, write);
  if (by.kind === 'attempt') raiseVersion(db, workflow);
  else
    addResult(db, workflow, check.nonce, {
      seq,
      name: stream,
      kind: by.kind,
      output: by.output,
      elapsedMs: by.elapsedMs,
    });
  return written({ kind: 'written' });
}

function refusedEntry(db: MemoryDatabase, check: OwnershipCheck, write: StreamWrite): Tried<StreamWriteAnswer> {
  const { stream, seq, by } = write;
  const workflow = db.workflows.get(check.workflowId);
  if (workflow !== undefined && isWrittenUnder(workflow, check.nonce, write)) return written({ kind: 'written' });
  const why = refused(db, check, by.kind === 'attempt' ? undefined : seq);
  if (why.kind === 'answered' || workflow === undefined) return why;
  // These last as long as the ownership does: no try under another version would be answered otherwise.
  if (isWrittenPlace(workflow, write)) return unwritten({ kind: 'written' });
  if (by.kind !== 'stream-close' && isClosedStream(workflow, stream)) return unwritten({ kind: 'stream-closed' });
  return why;
}

function isWrittenUnder(workflow: Workflow, nonce: string, { stream, seq, by }: StreamWrite): boolean {
  if (by.kind !== 'attempt') return workflow.results.get(seq)?.nonce === nonce;
  return entriesOf(workflow, stream).some((entry) => entry.nonce === nonce);
}

/** An earlier attempt of the step has written this place. */
function isWrittenPlace(workflow: Workflow, { stream, seq, by }: StreamWrite): boolean {
  if (by.kind !== 'attempt' || by.oncePlace === null) return false;
  return entriesOf(workflow, stream).some((entry) => entry.seq === seq && entry.oncePlace === by.oncePlace);
}

function addEntry(
  db: MemoryDatabase,
  workflow: Workflow,
  nonce: string,
  { stream, value, seq, by }: StreamWrite,
): void {
  const entries = workflow.streams.get(stream) ?? [];
  workflow.streams.set(stream, entries);
  entries.push({
    value,
    seq,
    attempt: by.kind === 'attempt' ? by.attempt : 1,
    oncePlace: by.kind === 'attempt' ? by.oncePlace : null,
    epoch: workflow.epoch,
    nonce,
    writtenAt: db.now(),
  });
}

/** One page of a stream; see read_stream. */
export function readStream(
  db: MemoryDatabase,
  position: StreamPosition,
  limits: { readonly entries: number; readonly bytes: number },
): StreamPage {
  const workflow = db.workflows.get(position.workflowId);
  if (workflow === undefined) return { kind: 'missing' };
  if (isRewritten(workflow, position)) return { kind: 'rewritten' };
  const rest = entriesOf(workflow, position.stream)
    .slice(position.next)
    .flatMap(({ value, ...entry }, index) =>
      value === null ? [] : [{ ...entry, value, offset: position.next + index }],
    );
  let bytes = 0;
  const fitting = rest.findIndex(({ value }, index) => {
    bytes += Buffer.byteLength(value);
    return index >= limits.entries || (index > 0 && bytes > limits.bytes);
  });
  const entries = fitting === -1 ? rest : rest.slice(0, fitting);
  return {
    kind: 'page',
    entries: entries.map(({ offset, value, seq, attempt, epoch, nonce, writtenAt }) => ({
      offset,
      value,
      seq,
      attempt,
      epoch,
      nonce,
      writtenAt: new Date(writtenAt),
    })),
    hasMore: entries.length < rest.length,
    isOver: isTerminal(workflow.status) || isClosedStream(workflow, position.stream),
  };
}

/** Whether a reader would find something new; see changed_streams. */
export function isChanged(db: MemoryDatabase, position: StreamPosition): boolean {
  const workflow = db.workflows.get(position.workflowId);
  return (
    workflow === undefined ||
    isTerminal(workflow.status) ||
    entriesOf(workflow, position.stream).length > position.next ||
    isRewritten(workflow, position) ||
    isClosedStream(workflow, position.stream)
  );
}

/**
 * Takes back what a workflow's streams got from calls that are no longer on record; see retract_stream_entries. What is left
 * moves together.
 */
export function retractEntries(workflow: Workflow): void {
  for (const [stream, entries] of workflow.streams) {
    const kept = entries.filter(({ seq }) => seq < workflow.firstSeq || workflow.results.has(seq));
    if (kept.length === 0) workflow.streams.delete(stream);
    else workflow.streams.set(stream, kept);
  }
}

function entriesOf(workflow: Workflow, stream: string): readonly StreamRow[] {
  return workflow.streams.get(stream) ?? [];
}

function isClosedStream(workflow: Workflow, stream: string): boolean {
  return entriesOf(workflow, stream).at(-1)?.value === null;
}

function isRewritten(workflow: Workflow, { stream, next, lastNonce }: StreamPosition): boolean {
  return lastNonce !== null && entriesOf(workflow, stream)[next - 1]?.nonce !== lastNonce;
}
