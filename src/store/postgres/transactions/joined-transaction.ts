import { setTimeout as sleep } from 'node:timers/promises';
import { DatabaseError } from '../../../errors/database-errors.js';
import { TransactionAbortedError, TransactionEndedError } from '../../../errors/transaction-errors.js';
import { WriteRefusedError } from '../../../errors/workflow-errors.js';
import type { Denied, Ownership, StepRecord } from '../../store.js';
import { CONFLICT_DELAYS_MS } from '../../conflict-delays.js';
import { MARKER, type SourceTransaction } from './source.js';
import { isConflict, sqlStateOf } from './sql-state.js';

/** SQLSTATE: a statement of this transaction has failed before. */
const IN_FAILED_TRANSACTION = '25P02';
/** SQLSTATE: the row's lock did not come within the function's lock_timeout. */
const LOCK_NOT_AVAILABLE = '55P03';

/** SQLSTATE: conclude_transaction has refused; its detail says why. */
const REFUSED = 'HF021';

/**
 * The longest record that is sent together with COMMIT, in bytes: both are one packet of a network then, so that never one of them
 * arrives without the other, and the row stays locked by a transaction that the server does not take for an idle one. The statement's text,
 * 200 bytes that are sent once a connection, and 300 of other parameters and headers leave that of the 1,448 of a packet on Ethernet.
 */
const MOST_BYTES_TO_CONCLUDE = 800;

/** What checkpoint_transaction answers. */
interface Refusal {
  readonly answer:
    'recorded' | 'recorded before' | 'ended' | 'missing' | 'lost' | 'locked' | 'nondeterminism' | 'conflict';
  readonly version: number | null;
  readonly detail: string | null;
}

/** Why the checkpoint of a transaction was not written: the transaction is to be rolled back. */
export class NotRecorded extends Error {
  override readonly name = 'NotRecorded';

  constructor(
    readonly end:
      | { readonly kind: 'denied'; readonly denied: Denied }
      | { readonly kind: 'failed'; readonly error: unknown }
      /** The same transaction, begun anew, may be recorded. */
      | { readonly kind: 'again'; readonly error: unknown },
  ) {
    super('The checkpoint of a transaction was not written.');
  }
}

/** An earlier run of the same transaction has committed after all. This one has to be rolled back: it would take effect twice. */
export class RecordedBefore extends Error {
  override readonly name = 'RecordedBefore';

  constructor() {
    super('This transaction is on record already.');
  }
}

/** What ends a transaction: its record, and the events that it has added. */
export interface CheckpointStatements {
  readonly checkpoint: string;
  readonly events: string;
  readonly conclude: string;
}

export function checkpointStatements(schema: string): CheckpointStatements {
  return {
    checkpoint: checkpointStatement(schema),
    events: eventsStatement(schema),
    conclude: `CALL "${schema}".conclude_transaction($1::text, $2::text, $3::uuid, $4::int8, $5::uuid, $6::int4, $7::text, $8::text,
  $9::int4, $10::text, $11::int4)`,
  };
}

function eventsStatement(schema: string): string {
  return `SELECT coalesce("${schema}".put_events(p.workflow_id, p.seq, p.events)::text, '') AS reply
FROM json_to_record($1::text::json) AS p (workflow_id text, seq int4, events json)`;
}

function checkpointStatement(schema: string): string {
  return `SELECT "${schema}".checkpoint_transaction(p.marker, p.workflow_id, p.token, p.version, p.nonce, p.seq, p.name,
  p.output, p.attempts, p.attempt_errors, p.elapsed_ms) AS reply
FROM json_to_record($1::text::json) AS p (marker text, workflow_id text, token uuid, version int8, nonce uuid, seq int4,
  name text, output text, attempts int4, attempt_errors text, elapsed_ms int4)`;
}

/** Whether a transaction can be concluded with this record. */
export function canConclude(ownership: Ownership, record: StepRecord): boolean {
  if ((record.events?.length ?? 0) > 0) return false;
  const texts = [ownership.workflowId, record.name, record.output, record.attemptErrors];
  return texts.reduce((sum, text) => sum + Buffer.byteLength(text ?? ''), 0) <= MOST_BYTES_TO_CONCLUDE;
}

/**
 * {@link checkpointIn} and COMMIT in one round trip. What it answers with is an error here, so that a conflict ends the transaction.
 *
 * @throws NotRecorded when nothing was committed, for sure. Whatever else it throws, what became of the transaction is to be found out:
 * it may even be about to commit.
 */
export function concludeIn(
  commitWith: NonNullable<SourceTransaction['commitWith']>,
  statements: CheckpointStatements,
  ownership: Ownership,
  record: StepRecord,
  nonce: string,
): Promise<void> {
  const parameters = [
    MARKER,
    ownership.workflowId,
    ownership.token,
    ownership.recordVersion,
    nonce,
    record.seq,
    record.name,
    record.output,
    record.attempts,
    record.attemptErrors,
    record.elapsedMs,
  ];
  return commitWith(statements.conclude, parameters).catch((error: unknown) => {
    const refusal = refusalOf(error);
    if (refusal === undefined) throw notRecorded(error) ?? error;
    ownership.recordVersion = refusal.version ?? ownership.recordVersion;
    if (refusal.answer !== 'conflict' && refusal.answer !== 'locked') throw endOf(refusal);
    throw new NotRecorded({ kind: 'again', error });
  });
}

function refusalOf(error: unknown): Refusal | undefined {
  if (!(error instanceof DatabaseError) || error.sqlState !== REFUSED) return undefined;
  const { detail } = error.cause as { readonly detail?: string };
  return JSON.parse(detail ?? '') as Refusal;
}

/**
 * The last statement of a transaction: records the result under the check of token and version. The caller owns the execution's
 * turn, and moves the version on when the transaction has committed.
 *
 * @throws NotRecorded, RecordedBefore, and whatever says that the connection is lost.
 */
export async function checkpointIn(
  open: SourceTransaction,
  statements: CheckpointStatements,
  ownership: Ownership,
  record: StepRecord,
  nonce: string,
): Promise<void> {
  for (let tries = 0; ; tries++) {
    const reply = await ask(open, statements.checkpoint, parameterOf(ownership, record, nonce));
    const refusal = JSON.parse(reply) as Refusal;
    if (refusal.answer === 'recorded') {
      await addEvents(open, statements.events, ownership, record);
      return;
    }
    if (refusal.answer === 'recorded before') throw new RecordedBefore();
    if (refusal.answer !== 'conflict' && refusal.answer !== 'locked') throw endOf(refusal);
    // Somebody wrote without taking ownership. The transaction is whole: only the statement is tried again.
    ownership.recordVersion = refusal.version ?? ownership.recordVersion;
    const delay = CONFLICT_DELAYS_MS[tries];
    if (delay === undefined) throw new NotRecorded({ kind: 'denied', denied: { kind: 'conflict' } });
    await sleep(delay);
  }
}

/** After the record: its check has locked the workflow's row. */
async function addEvents(
  open: SourceTransaction,
  statement: string,
  { workflowId }: Ownership,
  { seq, events = [] }: StepRecord,
): Promise<void> {
  if (events.length > 0) await ask(open, statement, JSON.stringify({ workflow_id: workflowId, seq, events }));
}

async function ask(open: SourceTransaction, statement: string, parameter: string): Promise<string> {
  try {
    return await open.reply(statement, parameter);
  } catch (error) {
    const end = notRecorded(error);
    if (end !== undefined) throw end;
    const state = sqlStateOf(error);
    if (state === undefined || !(await open.isAlive())) throw error;
    throw new NotRecorded({
      kind: 'failed',
      error: new WriteRefusedError('The database refuses the result of a transaction, which was rolled back.', {
        cause: error,
      }),
    });
  }
}

/** What the server has said before anything was committed; undefined: what it has said does not tell. */
function notRecorded(error: unknown): NotRecorded | undefined {
  const state = sqlStateOf(error);
  if (isConflict(error) || state === LOCK_NOT_AVAILABLE) return new NotRecorded({ kind: 'again', error });
  if (state === IN_FAILED_TRANSACTION) return new NotRecorded({ kind: 'failed', error: aborted(error) });
  return undefined;
}

export function aborted(cause: unknown): TransactionAbortedError {
  return new TransactionAbortedError(
    'A statement of the transaction failed, and its body returned all the same: everything was rolled back. Let the error ' +
      'pass, or put what may fail into a savepoint.',
    { cause },
  );
}

function endOf({ answer, detail }: Refusal): NotRecorded {
  switch (answer) {
    case 'ended':
      return new NotRecorded({
        kind: 'failed',
        error: new TransactionEndedError(
          'The body ended the transaction that it was given: what it committed has no record. Leave COMMIT and ROLLBACK to Holdfast.',
        ),
      });
    case 'nondeterminism':
      return new NotRecorded({ kind: 'denied', denied: { kind: 'nondeterminism', found: detail ?? '' } });
    case 'lost':
    case 'missing':
      return new NotRecorded({ kind: 'denied', denied: { kind: answer } });
    default:
      return new NotRecorded({ kind: 'denied', denied: { kind: 'conflict' } });
  }
}

function parameterOf(ownership: Ownership, record: StepRecord, nonce: string): string {
  return JSON.stringify({
    marker: MARKER,
    workflow_id: ownership.workflowId,
    token: ownership.token,
    version: ownership.recordVersion,
    nonce,
    seq: record.seq,
    name: record.name,
    output: record.output,
    attempts: record.attempts,
    attempt_errors: record.attemptErrors,
    elapsed_ms: record.elapsedMs,
  });
}
