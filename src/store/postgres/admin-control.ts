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
/** Deadlock, lock timeout: a matter of one row, in which its neighbours have no part. */
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
    const sending = new Sending(this.#driver, statementOf(this.#schema, call), call, this.#closing, (act, answer) => {
      for (const place of act.places) answers[place] = answer;
    });
    const acts = actsOf(workflowIds);
    for (let from = 0; from < acts.length; from += MAX_CONTROLS_PER_STATEMENT) {
      await sending.run(acts.slice(from, from + MAX_CONTROLS_PER_STATEMENT));
    }
    return answers;
  }
}

/** One call's way to the database. */
class Sending {
  readonly #giveUpAt = performance.now() + RETRY_FOR_MS;
  #givenUp: Error | undefined;

  constructor(
    private readonly driver: Driver,
    private readonly text: string,
    private readonly call: ControlCall,
    private readonly closing: AbortSignal,
    private readonly answer: (act: Act, answer: ControlAnswer) => void,
  ) {}

  async run(acts: readonly Act[]): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      if (this.closing.aborted) throw new StoreClosedError('The store is closed.');
      if (this.#givenUp !== undefined) {
        this.#fail(acts, this.#givenUp);
        return;
      }
      try {
        await this.#try(acts);
        return;
      } catch (error) {
        if (!(error instanceof Error)) throw error;
        const passes = isTransient(error);
        if (acts.length > 1 && (!passes || isRowLock(error))) {
          await this.#divide(acts);
          return;
        }
        if (!passes) {
          this.#fail(acts, error);
          return;
        }
        if (performance.now() >= this.#giveUpAt) this.#givenUp = error;
        else await pause(backoffMs(attempt), this.closing);
      }
    }
  }

  async #try(acts: readonly Act[]): Promise<void> {
    const rows = await this.driver.query<ControlRow>(
      this.text,
      [
        acts.map((act) => act.workflowId),
        acts.map((act) => act.nonce),
        ...this.call.parameters.map(([, value]) => value),
      ],
      { prepare: `holdfast_${this.call.functionName}`, timeoutMs: CONTROL_TIMEOUT_MS },
    );
    for (const row of rows) {
      const act = acts[row.position - 1];
      if (act !== undefined) this.answer(act, answerOf(row));
    }
  }

  async #divide(acts: readonly Act[]): Promise<void> {
    const middle = Math.ceil(acts.length / 2);
    await this.run(acts.slice(0, middle));
    await this.run(acts.slice(middle));
  }

  #fail(acts: readonly Act[], error: Error): void {
    for (const act of acts) this.answer(act, { kind: 'failed', error });
  }
}

function statementOf(schema: string, call: ControlCall): string {
  const parameters = call.parameters.map(([type], index) => `, $${String(index + 3)}::${type}`).join('');
  return `SELECT r.position::int4 AS position, c.result, c.refusal, c.status_before, c.status_after, c.detail
            FROM unnest($1::text[], $2::uuid[]) WITH ORDINALITY AS r (workflow_id, nonce, position)
           CROSS JOIN LATERAL "${schema}".${call.functionName}(r.workflow_id, r.nonce${parameters}) c`;
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
    case 'step':
      return { kind: 'step', last: Number(detail) };
    case 'awaited':
      return { kind: 'awaited', by: detail ?? '' };
    case 'exists':
    case 'status':
      return { kind: refusal };
    case null:
      throw new TypeError('A control function refused without saying why.');
  }
}
