import { randomUUID } from 'node:crypto';
import type { WorkflowStatus } from '../../api/workflow-handle.js';
import type { Driver, SqlParameter, SqlRow } from '../../drivers/driver.js';
import { DatabaseError } from '../../errors/database-errors.js';
import { StoreClosedError } from '../../errors/store-errors.js';
import type { ControlAnswer, ControlRefusal } from '../admin-store.js';
import { backoffMs, pause } from './backoff.js';
import { isTransient } from './transient-errors.js';

/** Workflows that one statement, and so one transaction, acts on. */
export const MAX_CONTROLS_PER_STATEMENT = 500;
/** How long one call is tried again before it is given up, in milliseconds. */
const RETRY_FOR_MS = 60_000;
/** Longest wait for one statement: a cascade may reach many thousands of rows. Milliseconds. */
const CONTROL_TIMEOUT_MS = 60_000;
/** Deadlock, lock timeout: a matter of one row, in which the other rows of the statement have no part. */
const ROW_LOCK_STATES: readonly string[] = ['40P01', '55P03'];

interface ControlRow extends SqlRow {
  readonly position: number;
  readonly result: 'done' | 'unchanged' | 'refused' | 'missing';
  readonly refusal: ControlRefusal['kind'] | null;
  readonly status_before: WorkflowStatus | null;
  readonly status_after: WorkflowStatus | null;
  readonly detail: string | null;
}

/** One act on one workflow. The nonce makes it the same act however often it is sent. */
interface Act {
  readonly workflowId: string;
  readonly nonce: string;
  /** Places in the caller's list. */
  readonly places: number[];
}

/** A control function and what it takes after the workflow's ID and the nonce, each with its type. */
export interface ControlCall {
  readonly functionName: string;
  readonly parameters: readonly (readonly [type: string, value: SqlParameter])[];
}

/**
 * Sends control operations: in the order of the IDs, so that two calls lock alike; in statements of bounded size; again,
 * as the same acts, when something passing stood in the way; and divided when it may be one workflow's fault.
 */
export class ControlSender {
  readonly #driver: Driver;
  readonly #schema: string;
  readonly #closing: AbortSignal;

  constructor(driver: Driver, schema: string, closing: AbortSignal) {
    this.#driver = driver;
    this.#schema = schema;
    this.#closing = closing;
  }

  async send(call: ControlCall, workflowIds: readonly string[]): Promise<readonly ControlAnswer[]> {
    const answers = new Array<ControlAnswer>(workflowIds.length);
    const sending = new Sending(this.#driver, statementOf(this.#schema, call), call, (act, answer) => {
      for (const place of act.places) answers[place] = answer;
    });
    await sending.run(actsOf(workflowIds), this.#closing);
    return answers;
  }
}

/** Acts that one statement is to carry, and when. */
interface Batch {
  readonly acts: readonly Act[];
  readonly attempt: number;
  /** By the monotonic clock. */
  readonly notBefore: number;
}

/** One call's way to the database. What has to be tried again goes to the end, so that nobody waits for it. */
class Sending {
  readonly #driver: Driver;
  readonly #text: string;
  readonly #call: ControlCall;
  readonly #answer: (act: Act, answer: ControlAnswer) => void;
  readonly #giveUpAt = performance.now() + RETRY_FOR_MS;
  #queue: Batch[] = [];

  constructor(driver: Driver, text: string, call: ControlCall, answer: (act: Act, answer: ControlAnswer) => void) {
    this.#driver = driver;
    this.#text = text;
    this.#call = call;
    this.#answer = answer;
  }

  async run(acts: readonly Act[], closing: AbortSignal): Promise<void> {
    for (let from = 0; from < acts.length; from += MAX_CONTROLS_PER_STATEMENT) {
      this.#add(acts.slice(from, from + MAX_CONTROLS_PER_STATEMENT), 1, 0);
    }
    for (let batch = this.#queue.shift(); batch !== undefined; batch = this.#queue.shift()) {
      const waitMs = batch.notBefore - performance.now();
      if (waitMs > 0) await pause(waitMs, closing);
      if (closing.aborted) throw new StoreClosedError('The store is closed.');
      try {
        await this.#try(batch.acts);
      } catch (error) {
        if (!(error instanceof Error)) throw error;
        this.#handle(batch, error);
      }
    }
  }

  #handle({ acts, attempt }: Batch, error: Error): void {
    const passes = isTransient(error);
    const ofOneRow = !passes || isRowLock(error);
    if (acts.length > 1 && ofOneRow) {
      const middle = Math.ceil(acts.length / 2);
      this.#add(acts.slice(0, middle), 1, 0);
      this.#add(acts.slice(middle), 1, 0);
    } else if (passes && performance.now() < this.#giveUpAt) {
      this.#add(acts, attempt + 1, performance.now() + backoffMs(attempt));
    } else {
      this.#fail(acts, error);
      // The database is out of reach, for the others as well.
      if (!ofOneRow) for (const batch of this.#queue.splice(0)) this.#fail(batch.acts, error);
    }
  }

  #add(acts: readonly Act[], attempt: number, notBefore: number): void {
    this.#queue.push({ acts, attempt, notBefore });
  }

  async #try(acts: readonly Act[]): Promise<void> {
    const { functionName, parameters } = this.#call;
    const rows = await this.#driver.query<ControlRow>(
      this.#text,
      [acts.map((act) => act.workflowId), acts.map((act) => act.nonce), ...parameters.map(([, value]) => value)],
      { prepare: `holdfast_${functionName}`, timeoutMs: CONTROL_TIMEOUT_MS },
    );
    for (const row of rows) {
      const act = acts[row.position - 1];
      if (act !== undefined) this.#answer(act, answerOf(row));
    }
  }

  #fail(acts: readonly Act[], error: Error): void {
    for (const act of acts) this.#answer(act, { kind: 'failed', error });
  }
}

/**
 * Descending, so that there is a sort, and no row is sent before all acts have succeeded: porsager's `postgres` counts the
 * rows of a statement that failed half-way to the next one of that connection, whose result then begins with holes.
 */
function statementOf(schema: string, call: ControlCall): string {
  const parameters = call.parameters.map(([type], index) => `, $${String(index + 3)}::${type}`).join('');
  return `SELECT r.position::int4 AS position, c.result, c.refusal, c.status_before, c.status_after, c.detail
            FROM unnest($1::text[], $2::uuid[]) WITH ORDINALITY AS r (workflow_id, nonce, position)
           CROSS JOIN LATERAL "${schema}".${call.functionName}(r.workflow_id, r.nonce${parameters}) c
           ORDER BY r.position DESC`;
}

/** An ID that is there twice is one act. */
function actsOf(workflowIds: readonly string[]): Act[] {
  const byId = new Map<string, Act>();
  workflowIds.forEach((workflowId, place) => {
    const act = byId.get(workflowId);
    if (act === undefined) byId.set(workflowId, { workflowId, nonce: randomUUID(), places: [place] });
    else act.places.push(place);
  });
  // Byte order is the order of the column's collation, in which the functions lock, too.
  return [...byId.values()].sort((a, b) => Buffer.compare(Buffer.from(a.workflowId), Buffer.from(b.workflowId)));
}

function isRowLock(error: Error): boolean {
  return error instanceof DatabaseError && ROW_LOCK_STATES.includes(error.sqlState);
}

function answerOf(row: ControlRow): ControlAnswer {
  switch (row.result) {
    case 'done':
      return { kind: 'done', statusBefore: row.status_before, statusAfter: row.status_after };
    case 'missing':
      return { kind: 'missing' };
    case 'unchanged':
      return { kind: 'unchanged', status: found(row) };
    case 'refused':
      return { kind: 'refused', refusal: refusalOf(row), status: found(row) };
  }
}

function found(row: ControlRow): WorkflowStatus {
  if (row.status_before === null) throw new TypeError(`A control function answered ${row.result} without a status.`);
  return row.status_before;
}

function refusalOf({ refusal, detail }: ControlRow): ControlRefusal {
  switch (refusal) {
    case 'step': {
      const [last = 0, first = 0] = (detail ?? '').split(' ').reverse().map(Number);
      return { kind: 'step', first, last };
    }
    case 'awaited':
      return { kind: 'awaited', by: detail ?? '' };
    case 'kind':
      return { kind: 'kind', found: detail ?? '' };
    case 'overtaken':
      return { kind: 'overtaken', by: detail ?? '' };
    case 'rollback':
      return { kind: 'rollback' };
    case 'compensation':
    case 'exists':
    case 'status':
    case 'unrecorded':
    case 'recorded':
    case 'owned':
      return { kind: refusal };
    case null:
      throw new TypeError('A control function refused without saying why.');
  }
}
