import type { SqlParameter } from '../../drivers/driver.js';
import { columnOf, unlessEmpty } from './column.js';
import { streamColumns, streamText } from './stream-statement.js';
import { vehicleOf, type WorkflowGroup } from './write-batch.js';
import { apartStatement } from './apart-statement.js';
import type { ApartWrite, PendingCheckpoint, PendingCompletion, PendingStart } from './pending-write.js';

/** One statement of the protocol, ready to send. The same text always has the same name. */
export interface WriteStatement {
  readonly name: string;
  readonly text: string;
  readonly parameters: readonly SqlParameter[];
}

type Column = (string | number | boolean | null)[];

const REFUSAL_COLUMNS =
  'item, answer, found_status, found_epoch::float8 AS found_epoch, found_version::float8 AS found_version, found_detail';

/** Writes `function(placeholders)` with an explicit cast for every parameter, numbering on from `offset`. */
function call(schema: string, functionName: string, types: readonly string[], offset: number): string {
  const placeholders = types.map((type, index) => `$${String(offset + index + 1)}::${type}`);
  return `"${schema}".${functionName}(${placeholders.join(', ')})`;
}

const START_TYPES = [
  'text', 'int8', 'text', 'text[]', 'uuid[]', 'uuid[]', 'text[]', 'text[]', 'text[]', 'int4[]', 'int8[]', 'text[]',
]; // prettier-ignore
const CHECKPOINT_TYPES = [
  'text[]', 'uuid[]', 'int8[]', 'int4[]', 'uuid[]', 'int4[]', 'text[]', 'text[]', 'text[]', 'text[]', 'int4[]', 'text[]',
  'text[]', 'int4[]',
]; // prettier-ignore
const CHECKPOINT_ONE_TYPES = [
  'text', 'uuid', 'int8', 'uuid', 'int4', 'text', 'text', 'text', 'text', 'int4', 'text', 'text', 'int4',
]; // prettier-ignore
const COMPLETE_TYPES = ['text[]', 'uuid[]', 'int8[]', 'uuid[]', 'text[]', 'text[]', 'text[]', 'text[]'];

/** What a combined statement can consist of, in the order of its parts. */
const PARTS = [
  { part: 'start', functionName: 'start_batch', types: START_TYPES },
  { part: 'checkpoint', functionName: 'checkpoint_batch', types: CHECKPOINT_TYPES },
  { part: 'complete', functionName: 'complete_batch', types: COMPLETE_TYPES },
] as const;

/** The statements of one schema. Texts are built once: which parts a batch has is all that varies. */
export class WriteStatements {
  readonly #texts = new Map<string, string>();

  constructor(readonly schema: string) {}

  /** One step of one workflow. */
  lone(write: PendingCheckpoint): WriteStatement {
    const { ownership, step } = write;
    return {
      name: 'holdfast_checkpoint_one',
      text: this.#text(
        'one',
        () => `SELECT ${REFUSAL_COLUMNS} FROM ${call(this.schema, 'checkpoint_one', CHECKPOINT_ONE_TYPES, 0)}`,
      ),
      parameters: [
        ownership.workflowId, ownership.token, ownership.recordVersion, write.nonce, step.seq, step.name, step.kind,
        step.output, step.error, step.attempts, step.attemptErrors, step.childId, step.elapsedMs,
      ], // prettier-ignore
    };
  }

  /** Starts, checkpoints and completions of many workflows in one transaction. */
  combined(
    starts: readonly PendingStart[],
    checkpoints: readonly WorkflowGroup[],
    completions: readonly PendingCompletion[],
  ): WriteStatement {
    const parameters: SqlParameter[] = [];
    if (starts.length > 0) parameters.push(...startColumns(starts));
    if (checkpoints.length > 0) parameters.push(...checkpointColumns(checkpoints));
    if (completions.length > 0) parameters.push(...completionColumns(completions));
    const present = { start: starts.length > 0, checkpoint: checkpoints.length > 0, complete: completions.length > 0 };
    const parts = PARTS.filter(({ part }) => present[part]);
    const key = parts.map(({ part }) => part).join('_');
    const text = this.#text(key, () => {
      let offset = 0;
      const selects = parts.map(({ part, functionName, types }) => {
        const select = `SELECT '${part}' AS part, ${REFUSAL_COLUMNS} FROM ${call(this.schema, functionName, types, offset)}`;
        offset += types.length;
        return select;
      });
      return selects.join(' UNION ALL ');
    });
    return { name: `holdfast_write_${key}`, text, parameters };
  }

  /** Writes of one of the rarer functions, each by itself: they write more than the record of their own workflow. */
  apart(writes: readonly [ApartWrite, ...ApartWrite[]]): WriteStatement {
    const vehicle = vehicleOf(writes[0]);
    const { text, parameters } = apartStatement(this.schema, writes);
    return { name: `holdfast_record_${vehicle}`, text: this.#text(vehicle, () => text), parameters };
  }

  /** Entries of streams, of many workflows. */
  streams(groups: readonly WorkflowGroup[]): WriteStatement {
    return {
      name: 'holdfast_stream_batch',
      text: this.#text('streams', () => streamText(this.schema)),
      parameters: streamColumns(groups),
    };
  }

  #text(key: string, build: () => string): string {
    let text = this.#texts.get(key);
    if (text === undefined) {
      text = build();
      this.#texts.set(key, text);
    }
    return text;
  }
}

function startColumns(starts: readonly PendingStart[]): SqlParameter[] {
  const [first] = starts;
  if (first === undefined) return [];
  // One store serves one executor at a time, so that these are the same for the whole batch.
  const { executor, appVersion } = first.request;
  return [
    executor.executorId,
    executor.incarnation,
    appVersion,
    starts.map(({ workflowId }) => workflowId),
    starts.map(({ request }) => request.token),
    starts.map(({ nonce }) => nonce),
    starts.map(({ request }) => request.name),
    columnOf(starts, ({ request }) => request.instance),
    starts.map(({ request }) => request.input),
    starts.map(({ request }) => request.maxAttempts),
    columnOf(starts, ({ request }) => request.timeoutMs),
    columnOf(starts, ({ request }) => request.attributes),
  ];
}

function checkpointColumns(groups: readonly WorkflowGroup[]): SqlParameter[] {
  const workflowIds: Column = [];
  const tokens: Column = [];
  const versions: Column = [];
  const counts: Column = [];
  const nonces: Column = [];
  const seqs: Column = [];
  const names: Column = [];
  const kinds: Column = [];
  const outputs: Column = [];
  const errors: Column = [];
  const attempts: Column = [];
  const attemptErrors: Column = [];
  const childIds: Column = [];
  const elapsed: Column = [];
  for (const { writes } of groups) {
    for (let index = 0; index < writes.length; index++) {
      const { ownership, step, nonce } = writes[index] as PendingCheckpoint;
      workflowIds.push(ownership.workflowId);
      tokens.push(ownership.token);
      versions.push(ownership.recordVersion + index);
      counts.push(index === 0 ? writes.length : 0);
      nonces.push(nonce);
      seqs.push(step.seq);
      names.push(step.name);
      kinds.push(step.kind);
      outputs.push(step.output);
      errors.push(step.error);
      attempts.push(step.attempts);
      attemptErrors.push(step.attemptErrors);
      childIds.push(step.childId);
      elapsed.push(step.elapsedMs);
    }
  }
  return [
    workflowIds, tokens, versions, counts, nonces, seqs, names, kinds, unlessEmpty(outputs), unlessEmpty(errors), attempts,
    unlessEmpty(attemptErrors), unlessEmpty(childIds), elapsed,
  ]; // prettier-ignore
}

function completionColumns(completions: readonly PendingCompletion[]): SqlParameter[] {
  return [
    completions.map(({ workflowId }) => workflowId),
    completions.map(({ ownership }) => ownership.token),
    completions.map(({ ownership }) => ownership.recordVersion),
    completions.map(({ nonce }) => nonce),
    completions.map(({ outcome }) => outcome.status),
    columnOf(completions, ({ outcome }) => outcome.output),
    columnOf(completions, ({ outcome }) => outcome.error),
    columnOf(completions, ({ outcome }) => outcome.attention),
  ];
}
