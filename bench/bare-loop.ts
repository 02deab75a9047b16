import { randomUUID } from 'node:crypto';

import pg from 'pg';

import { BareProtocol, type BareWorkflow } from './bare-protocol.js';
import type { StepMeter } from './closed-loop.js';
import { installProtocol } from './install-protocol.js';
import type { LoadOrder } from './protocol.js';
import { databaseUrl, type HostedSubject, hostSubject } from './worker-host.js';

/** Started ahead in one statement, so that the checkpoint loop is nothing but checkpoints. */
const STARTED_AHEAD = 1_000;
/** As many connections as Holdfast has. */
const POOL_SIZE = 10;

/**
 * What PostgreSQL gives to one client on one connection, or on a pool. Five loops, each closed and alone:
 *
 * - `commit`: insert one small row, prepared. The floor of any durable write: a round trip, a transaction, a flush of the WAL.
 * - `checkpoint`: record one step after another through the protocol's function.
 * - `transaction`: BEGIN, a row, a record of it, COMMIT, on a pool as large as Holdfast's. Nothing is checked.
 * - `checked-transaction`: the same with the writes that a `@Transaction` makes: the record under a check of token and version.
 * - `workflow`: start, checkpoints, complete: every commit that a workflow makes, in sequence.
 */
await hostSubject(launch);

async function launch(): Promise<HostedSubject> {
  const client = new pg.Client({ connectionString: databaseUrl() });
  await client.connect();
  await installProtocol(client);
  await client.query(
    'CREATE TABLE public.floor (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, value text NOT NULL)',
  );
  await client.query(
    `CREATE TABLE public.record (workflow_id text COLLATE "C", seq int, name text NOT NULL, output text,
       PRIMARY KEY (workflow_id, seq))`,
  );
  const pool = new pg.Pool({ connectionString: databaseUrl(), max: POOL_SIZE });
  const protocol = await BareProtocol.register(client);
  const meter: StepMeter = { steps: 0, startDelaysMs: [] };
  const ahead: BareWorkflow[] = [];

  const recordSteps = async (workflow: BareWorkflow, steps: number): Promise<void> => {
    for (let index = 0; index < steps; index++) {
      await protocol.checkpoint(workflow);
      meter.steps++;
    }
  };

  const inTransactions = async (
    steps: number,
    record: (connection: pg.PoolClient, index: number) => Promise<unknown>,
  ): Promise<void> => {
    for (let index = 0; index < steps; index++) {
      const connection = await pool.connect();
      await connection.query('BEGIN');
      await connection.query({
        name: 'floor',
        text: 'INSERT INTO public.floor (value) VALUES ($1)',
        values: [String(index)],
      });
      await record(connection, index);
      await connection.query('COMMIT');
      connection.release();
      meter.steps++;
    }
  };

  const perform = async ({ work, steps }: LoadOrder): Promise<void> => {
    switch (work) {
      case 'commit':
        for (let index = 0; index < steps; index++) {
          await client.query({
            name: 'floor',
            text: 'INSERT INTO public.floor (value) VALUES ($1)',
            values: [String(index)],
          });
          meter.steps++;
        }
        return;
      case 'checkpoint': {
        if (ahead.length === 0) ahead.push(...(await protocol.start(STARTED_AHEAD)));
        const workflow = ahead.pop();
        if (workflow === undefined) throw new Error('Starting ahead started nothing.');
        return recordSteps(workflow, steps);
      }
      case 'transaction': {
        const workflowId = randomUUID();
        return inTransactions(steps, (connection, index) =>
          connection.query({
            name: 'record',
            text: 'INSERT INTO public.record (workflow_id, seq, name, output) VALUES ($1, $2, $3, $4)',
            values: [workflowId, index, 'insert', String(index)],
          }),
        );
      }
      case 'checked-transaction': {
        const [workflow] = await protocol.start(1);
        if (workflow === undefined) throw new Error('Starting a workflow started nothing.');
        return inTransactions(steps, (connection) => protocol.recordByHand(connection, workflow));
      }
      case 'workflow': {
        const [workflow] = await protocol.start(1);
        if (workflow === undefined) throw new Error('Starting a workflow started nothing.');
        await recordSteps(workflow, steps);
        return protocol.complete(workflow);
      }
      case 'queued':
      case 'queued-remotely':
      case 'drain':
        throw new Error('The bare client has no queues.');
    }
  };
  const close = async (): Promise<void> => {
    await pool.end();
    await client.end();
  };
  return { about: 'bare pg client, one connection; transactions: a pool', meter, perform, close };
}
