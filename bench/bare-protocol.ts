import { randomUUID } from 'node:crypto';

import type pg from 'pg';

const EXECUTOR_ID = 'bare';
const LEASE_MS = 3_600_000;

/** The next step to record, and the right to record it. */
export interface BareWorkflow {
  readonly id: string;
  readonly token: string;
  version: number;
  seq: number;
}

/**
 * The protocol's functions, called as plainly as `pg` can: one connection, prepared statements, nothing else. This is the
 * only place of the benchmark that knows their signatures.
 */
export class BareProtocol {
  readonly #client: pg.Client;
  readonly #incarnation: string;

  private constructor(client: pg.Client, incarnation: string) {
    this.#client = client;
    this.#incarnation = incarnation;
  }

  static async register(client: pg.Client): Promise<BareProtocol> {
    const { rows } = await client.query<{ incarnation: string }>(
      'SELECT holdfast.register_executor($1, $2, $3, $4, $5)::text AS incarnation',
      [EXECUTOR_ID, '', LEASE_MS, 'localhost', process.pid],
    );
    if (rows[0] === undefined) throw new Error('register_executor returned nothing.');
    return new BareProtocol(client, rows[0].incarnation);
  }

  /** Starts workflows in one statement. */
  async start(count: number): Promise<BareWorkflow[]> {
    const workflows = Array.from({ length: count }, () => ({
      id: randomUUID(),
      token: randomUUID(),
      version: 1,
      seq: 0,
    }));
    const each = <Value>(value: Value): Value[] => workflows.map(() => value);
    const { rows } = await this.#client.query({
      name: 'start_batch',
      text: `SELECT answer FROM holdfast.start_batch($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
      values: [
        EXECUTOR_ID,
        this.#incarnation,
        '',
        workflows.map((workflow) => workflow.id),
        workflows.map((workflow) => workflow.token),
        workflows.map(() => randomUUID()),
        each('trivialSteps'),
        each(null),
        each('[10]'),
        each(100),
        each(null),
        each(null),
      ],
    });
    if (rows.length > 0) throw new Error('start_batch refused a new workflow.');
    return workflows;
  }

  /** THE call: what is measured as the limit of one connection. */
  async checkpoint(workflow: BareWorkflow): Promise<void> {
    const { rows } = await this.#client.query<{ answer: string | null }>({
      name: 'checkpoint_one',
      text: `SELECT answer FROM holdfast.checkpoint_one($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`,
      values: [
        workflow.id,
        workflow.token,
        workflow.version,
        randomUUID(),
        workflow.seq,
        'trivial',
        'step',
        String(workflow.seq),
        null,
        1,
        null,
        null,
        0,
      ],
    });
    if (rows[0]?.answer !== null) throw new Error(`checkpoint_one refused: ${String(rows[0]?.answer)}.`);
    workflow.version++;
    workflow.seq++;
  }

  /** What a checkpoint writes, and its check, in one statement of the transaction that is open. */
  async recordByHand(connection: pg.PoolClient, workflow: BareWorkflow): Promise<void> {
    const { rowCount } = await connection.query({
      name: 'record_by_hand',
      text: `WITH owned AS (
               UPDATE holdfast.workflow_status
                  SET record_version = record_version + 1, updated_at = clock_timestamp()
                WHERE workflow_id = $1 AND owner_token = $2 AND record_version = $3
               RETURNING workflow_id, record_version, epoch, updated_at)
             INSERT INTO holdfast.step_result (workflow_id, seq, name, kind, output, attempts, record_version, epoch, nonce,
                                               started_at, completed_at)
             SELECT workflow_id, $4, $5, 'transaction', $6, 1, record_version, epoch, $7, updated_at, updated_at FROM owned`,
      values: [
        workflow.id,
        workflow.token,
        workflow.version,
        workflow.seq,
        'insert',
        String(workflow.seq),
        randomUUID(),
      ],
    });
    if (rowCount !== 1) throw new Error('The record was refused.');
    workflow.version++;
    workflow.seq++;
  }

  async complete(workflow: BareWorkflow): Promise<void> {
    const { rows } = await this.#client.query({
      name: 'complete_batch',
      text: `SELECT answer FROM holdfast.complete_batch($1, $2, $3, $4, $5, $6, $7, $8)`,
      values: [
        [workflow.id],
        [workflow.token],
        [workflow.version],
        [randomUUID()],
        ['SUCCESS'],
        ['45'],
        [null],
        [null],
      ],
    });
    if (rows.length > 0) throw new Error('complete_batch refused an owned workflow.');
  }
}
