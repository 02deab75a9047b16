import pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import {
  defineDataSource,
  defineWorkflow,
  renderCompletionSql,
  runStep,
  runTransaction,
  Transaction,
  transaction,
  Workflow,
  type Holdfast,
} from '../../src/index.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { createBed, gate, waitUntil, type Bed } from '../support/launch.js';
import { startPgProxyFor } from '../support/pg-proxy.js';

let bed: Bed;
let other: TestDatabase;
let elsewhere: pg.Pool;
let beside: pg.Pool;
let scenario: () => Promise<unknown> = () => Promise.resolve();
const run = defineWorkflow('run', () => scenario());

/** The smallest adapter. */
const adapterOf = (pool: pg.Pool) => ({
  async transaction<Result>(
    body: (client: pg.PoolClient) => Promise<Result>,
    { isolation, readOnly }: { isolation: string; readOnly: boolean },
  ) {
    const client = await pool.connect();
    try {
      await client.query(`BEGIN ISOLATION LEVEL ${isolation} ${readOnly ? 'READ ONLY' : 'READ WRITE'}`);
      const result = await body(client);
      await client.query('COMMIT');
      return result;
    } catch (error) {
      await client.query('ROLLBACK');
      throw error;
    } finally {
      client.release();
    }
  },
  async query(client: pg.PoolClient, statement: string, parameter: string) {
    return (await client.query<Record<string, unknown>>(statement, [parameter])).rows;
  },
});

beforeAll(async () => {
  bed = await createBed();
  other = await createTestDatabase();
  elsewhere = new pg.Pool({ connectionString: other.url });
  beside = new pg.Pool({ connectionString: bed.database.url });
  for (const pool of [elsewhere, beside]) {
    pool.on('error', () => undefined);
    await pool.query('CREATE TABLE effect (id text PRIMARY KEY, n int NOT NULL DEFAULT 1)');
  }
});
afterAll(async () => {
  await beside.end();
  await bed.close();
  await elsewhere.end();
  await other.drop();
});

let count = 0;
async function start<Result>(holdfast: Holdfast, body: () => Promise<Result>, id = `ds-${String(++count)}`) {
  scenario = body;
  const handle = await holdfast.start(run, { workflowId: id });
  const result = handle.result() as Promise<Result>;
  result.catch(() => undefined);
  return { result, id };
}
const effectsIn = async (pool: pg.Pool) =>
  (await pool.query<{ id: string }>('SELECT id FROM effect ORDER BY id')).rows.map(({ id }) => id);
const completions = async () =>
  (
    await elsewhere.query<{ workflow_id: string; seq: number }>(
      'SELECT workflow_id, seq FROM holdfast_completion.completion',
    )
  ).rows;

describe('a data source in Holdfast’s own database', () => {
  test.each(['a pool', 'an adapter'] as const)(
    '%s: the record joins its transactions, and there is no completion',
    async (kind) => {
      const source = kind === 'a pool' ? defineDataSource('same', beside) : defineDataSource('same', adapterOf(beside));
      const holdfast = await bed.launch({ workflows: [run], dataSources: [source] });
      const seen: boolean[] = [];
      const { result, id } = await start(holdfast, () =>
        runTransaction(
          'write',
          async () => {
            await transaction(source).client.query('INSERT INTO effect VALUES ($1)', [kind]);
            seen.push((await effectsIn(beside)).includes(kind));
            return 'done';
          },
          { dataSource: source },
        ),
      );
      expect(await result).toBe('done');
      expect(seen).toEqual([false]);
      expect(await effectsIn(beside)).toContain(kind);
      const { rows } = await bed.sql.query<{ same: boolean }>(
        `SELECT r.xmin::text = e.xmin::text AS same FROM holdfast.step_result r, effect e WHERE r.workflow_id = $1 AND e.id = $2`,
        [id, kind],
      );
      expect(rows).toEqual([{ same: true }]);
      expect((await bed.sql.query(`SELECT to_regnamespace('holdfast_completion') AS there`)).rows).toEqual([
        { there: null },
      ]);
      await holdfast.close();
    },
  );

  test('a role that may not write there is found out at launch, and told what to run', async () => {
    await bed.sql.query(
      `CREATE ROLE "${bed.database.name}_app" LOGIN; GRANT SELECT ON effect TO "${bed.database.name}_app"`,
    );
    const url = new URL(bed.database.url);
    url.username = `${bed.database.name}_app`;
    const pool = new pg.Pool({ connectionString: url.href });
    await expect(bed.launch({ workflows: [run], dataSources: [defineDataSource('poor', pool)] })).rejects.toMatchObject(
      { code: 'DATA_SOURCE_INVALID' },
    );
    await pool.end();
    await bed.sql.query(`DROP OWNED BY "${bed.database.name}_app"; DROP ROLE "${bed.database.name}_app"`);
  });
});

test('C59 a role with the rights that the README names runs transactions in another database; one without a sequence is told so', async () => {
  const role = `${bed.database.name}_worker`;
  await bed.sql.query(`CREATE ROLE "${role}" LOGIN; GRANT USAGE ON SCHEMA holdfast TO "${role}";
    GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA holdfast TO "${role}"`);
  await elsewhere.query(`${await renderCompletionSql()} GRANT USAGE ON SCHEMA holdfast_completion TO "${role}";
    GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA holdfast_completion TO "${role}"; GRANT INSERT ON effect TO "${role}"`);
  const as = (url: string) => Object.assign(new URL(url), { username: role }).href;
  const pool = new pg.Pool({ connectionString: as(other.url) });
  const app = defineDataSource('app', pool);
  const launch = () =>
    bed.launch({ workflows: [run], dataSources: [app], database: as(bed.database.url), migrate: false });
  const refused = await launch().catch((error: unknown) => error);
  expect(refused).toMatchObject({
    code: 'SCHEMA_PERMISSION_DENIED',
    grants: [`GRANT USAGE ON SEQUENCE holdfast.transaction_generation_number TO ${role}`],
  });
  await bed.sql.query(`GRANT USAGE ON ALL SEQUENCES IN SCHEMA holdfast TO "${role}"`);
  const holdfast = await launch();
  const { result } = await start(holdfast, () =>
    runTransaction(
      'write',
      () =>
        transaction(app)
          .client.query("INSERT INTO effect VALUES ('limited')")
          .then(() => 1),
      {
        dataSource: app,
      },
    ),
  );
  expect(await result).toBe(1);
  await holdfast.close();
  await pool.end();
  await bed.sql.query(`DROP OWNED BY "${role}"`);
  await elsewhere.query(`DROP OWNED BY "${role}"; DROP ROLE "${role}"`);
});

test('a workflow that the database refuses is given back with a word why, and goes on when that is mended', async () => {
  const app = defineDataSource('app', elsewhere);
  const told: unknown[] = [];
  const quiet = () => undefined;
  const logger = { debug: quiet, info: quiet, warn: quiet, error: (_: string, fields: unknown) => told.push(fields) };
  const holdfast = await bed.launch({ workflows: [run], dataSources: [app], logger, lease: '1s' });
  await bed.sql.query('ALTER SEQUENCE holdfast.transaction_generation_number RENAME TO hidden');
  const { result, id } = await start(holdfast, () =>
    runTransaction('one', () => Promise.resolve(1), { dataSource: app }),
  );
  await waitUntil(() => told.length > 0, 'it is told');
  expect(told[0]).toEqual({ workflowId: id, code: 'DATABASE_ERROR', sqlState: '42P01' });
  await bed.sql.query('ALTER SEQUENCE holdfast.hidden RENAME TO transaction_generation_number');
  expect(await result).toBe(1);
  await holdfast.close();
});

describe.each(['a pool', 'an adapter'] as const)('a data source in another database: %s', (kind) => {
  const source = () =>
    kind === 'a pool' ? defineDataSource('app', elsewhere) : defineDataSource('app', adapterOf(elsewhere));
  beforeAll(async () => {
    await elsewhere.query(await renderCompletionSql());
  });
  beforeEach(async () => {
    await elsewhere.query('TRUNCATE effect, holdfast_completion.completion');
  });

  test('body and completion commit together, and the record follows', async () => {
    const app = source();
    const holdfast = await bed.launch({ workflows: [run], dataSources: [app] });
    const { result, id } = await start(holdfast, async () => [
      await runStep('before', () => Promise.resolve(1)),
      await runTransaction(
        'write',
        async () => {
          await transaction(app).client.query("INSERT INTO effect VALUES ('a')");
          return new Date(0);
        },
        { dataSource: app },
      ),
      await runTransaction(
        'fails',
        async () => {
          await transaction(app).client.query("INSERT INTO effect VALUES ('b')");
          throw new RangeError('no');
        },
        { dataSource: app },
      ).catch((error: unknown) => (error as Error).name),
      await runTransaction(
        'read',
        async () => (await transaction(app).client.query('SELECT id FROM effect')).rowCount,
        {
          dataSource: app,
          readOnly: true,
        },
      ),
    ]);
    expect(await result).toEqual([1, new Date(0), 'RangeError', 1]);
    expect(await effectsIn(elsewhere)).toEqual(['a']);
    expect(await completions()).toEqual([
      { workflow_id: id, seq: 1 },
      { workflow_id: id, seq: 2 },
    ]);
    await holdfast.close();
  });

  test('an execution that was replaced in the middle of the body commits nothing, and the new owner runs it', async () => {
    const app = source();
    const arrived = gate();
    const free = gate();
    let runs = 0;
    const body = () =>
      runTransaction(
        'write',
        async () => {
          const mine = ++runs;
          await transaction(app).client.query('INSERT INTO effect VALUES ($1)', [`run ${String(mine)}`]);
          if (mine === 1) {
            arrived.open();
            await free.opened;
          }
          return mine;
        },
        { dataSource: app },
      );
    const first = await bed.launch({ workflows: [run], dataSources: [app], executorId: `first ${kind}`, lease: '60s' });
    const { result, id } = await start(first, body);
    await arrived.opened;
    // Told nothing: it finds out by itself, before it commits.
    await bed.sql.query(
      `UPDATE holdfast.workflow_status SET status = 'ENQUEUED', owner_token = NULL, record_version = record_version + 1 WHERE workflow_id = $1`,
      [id],
    );
    const second = await bed.launch({ workflows: [run], dataSources: [app], executorId: `second ${kind}` });
    await waitUntil(async () => {
      const { rows } = await bed.sql.query<{ epoch: string }>(
        'SELECT epoch::text FROM holdfast.workflow_status WHERE workflow_id = $1',
        [id],
      );
      return rows[0]?.epoch === '2';
    }, 'it is taken over');
    free.open();
    expect(await result).toBe(2);
    expect(await effectsIn(elsewhere)).toEqual(['run 2']);
    await first.close();
    await second.close();
  });

  test('what has committed and is not on record is adopted by the next owner, without running the body', async () => {
    const app = source();
    let runs = 0;
    const body = () =>
      runTransaction(
        'write',
        async () => {
          runs += 1;
          await transaction(app).client.query("INSERT INTO effect VALUES ('once')");
          return 'the first result';
        },
        { dataSource: app },
      );
    const holdfast = await bed.launch({ workflows: [run], dataSources: [app] });
    const { result, id } = await start(holdfast, body);
    expect(await result).toBe('the first result');
    // As if the process had died between its commit there and the record here.
    await bed.sql.query(
      `WITH a AS (DELETE FROM holdfast.step_result WHERE workflow_id = $1 AND seq = 0),
            b AS (DELETE FROM holdfast.workflow_outcome WHERE workflow_id = $1)
       UPDATE holdfast.workflow_status SET status = 'ENQUEUED', owner_token = NULL, completed_at = NULL,
              record_version = record_version + 1 WHERE workflow_id = $1`,
      [id],
    );
    await waitUntil(async () => {
      const { rows } = await bed.sql.query<{ status: string }>(
        'SELECT status FROM holdfast.workflow_status WHERE workflow_id = $1',
        [id],
      );
      return rows[0]?.status === 'SUCCESS';
    }, 'it has ended again');
    expect(await holdfast.handle(id).result()).toBe('the first result');
    expect(runs).toBe(1);

    // A rewind to it asks for another run, and so does a new life of the ID; a rewind to what follows does not.
    await elsewhere.query('TRUNCATE effect');
    await holdfast.admin.rewind(id, { toStep: 0 });
    await waitUntil(() => runs === 2, 'the body has run again');
    await holdfast.handle(id).result();
    await elsewhere.query('TRUNCATE effect');
    await holdfast.admin.delete(id, { force: true });
    const again = await start(holdfast, body, id);
    await again.result;
    expect(runs).toBe(3);
    await holdfast.close();
  });

  test('of an owner and a late zombie one alone decides: the other adopts', async () => {
    const app = source();
    const holdfast = await bed.launch({ workflows: [run], dataSources: [app] });
    const arrived = gate();
    const free = gate();
    let runs = 0;
    const { result, id } = await start(holdfast, () =>
      runTransaction(
        'write',
        async () => {
          runs += 1;
          await transaction(app).client.query('INSERT INTO effect VALUES ($1)', [`run ${String(runs)}`]);
          if (runs === 1) {
            arrived.open();
            await free.opened;
          }
          return 'mine';
        },
        { dataSource: app },
      ),
    );
    await arrived.opened;
    // Somebody of the same life has decided it meanwhile.
    await elsewhere.query(
      `INSERT INTO holdfast_completion.completion (installation, workflow_id, seq, generation, output, epoch)
       SELECT installation, workflow_id, 0, generation, '"theirs"', epoch FROM holdfast_completion.completion_owner WHERE workflow_id = $1`,
      [id],
    );
    free.open();
    expect(await result).toBe('theirs');
    expect(runs).toBe(1);
    expect(await effectsIn(elsewhere)).toEqual([]);
    await holdfast.close();
  });
});

test('a rollback undoes what has committed in another database and is not on record, and only that', async () => {
  const app = defineDataSource('app', elsewhere);
  const proxy = await startPgProxyFor(bed.database.url);
  const arrived = gate();
  const undone: unknown[] = [];
  const write = (id: string, dataSource: typeof app) =>
    runTransaction(
      'write',
      async () => {
        await transaction(app).client.query('INSERT INTO effect VALUES ($1)', [id]);
        if (id === 'second') arrived.open();
        if (id === 'third') await new Promise(() => undefined);
        return id;
      },
      { dataSource, idleTimeout: 300, compensate: (result: string) => Promise.resolve(void undone.push(result)) },
    );
  await elsewhere.query('TRUNCATE effect');
  const first = await bed.launch({
    workflows: [run],
    dataSources: [app],
    executorId: 'dies',
    database: proxy.connectionString(bed.database.url),
  });
  const { id } = await start(first, async () => {
    await write('first', app);
    await Promise.all([write('second', app), write('third', app)]);
  });
  await arrived.opened;
  const held = proxy.arm({ do: 'black-hole' }, /checkpoint_one|checkpoint_batch/);
  await held.happened;
  proxy.blackHoleAll();
  await proxy.admit('refused');
  await bed.expireLease('dies');
  const second = await bed.launch({ workflows: [], dataSources: [app] });
  await second.admin.cancel(id, { compensate: true });
  await second.close();
  const third = await bed.launch({ workflows: [run], dataSources: [app] });
  await expect(third.handle(id).result()).rejects.toMatchObject({ code: 'WORKFLOW_CANCELLED' });
  expect(undone.sort()).toEqual(['first', 'second']);
  expect(await effectsIn(elsewhere)).toEqual(['first', 'second']);
  await third.close();
  await first.close();
  await proxy.close();
});

test('an adapter in another database without the table of completions is refused at launch, and told what to run', async () => {
  const app = defineDataSource('bare', adapterOf(elsewhere), { completionSchema: 'nowhere' });
  await expect(bed.launch({ workflows: [run], dataSources: [app] })).rejects.toMatchObject({
    code: 'DATA_SOURCE_INVALID',
  });
});

test('an older table of completions is replaced by launch, or to be replaced by hand; a newer one is refused', async () => {
  const schema = 'holdfast_versions';
  const pool = defineDataSource('pool', elsewhere, { completionSchema: schema });
  const adapter = defineDataSource('adapter', adapterOf(elsewhere), { completionSchema: schema });
  const launch = async (source: typeof pool) => {
    await (await bed.launch({ workflows: [run], dataSources: [source] })).close();
  };
  const setVersion = (version: number) =>
    elsewhere.query(
      `CREATE OR REPLACE FUNCTION ${schema}.completion_version() RETURNS integer LANGUAGE sql AS 'SELECT ${String(version)}'`,
    );
  const version = async () =>
    (await elsewhere.query<{ v: number }>(`SELECT ${schema}.completion_version() AS v`)).rows[0]?.v;
  await launch(pool);
  const current = await version();
  await launch(adapter);

  await setVersion(0);
  await expect(launch(adapter)).rejects.toMatchObject({ code: 'DATA_SOURCE_INVALID' });
  await launch(pool);
  expect(await version()).toBe(current);

  await setVersion(1_000);
  for (const source of [pool, adapter]) await expect(launch(source)).rejects.toMatchObject({ code: 'SCHEMA_TOO_NEW' });
  expect(await version()).toBe(1_000);
});

test('a data source that was not given to launch is refused: at launch for methods, else at the call', async () => {
  const app = defineDataSource('stray', elsewhere);
  class Shop {
    @Transaction({ dataSource: app })
    static async write(): Promise<void> {
      await Promise.resolve();
    }
    @Workflow()
    static async order(): Promise<void> {
      await Shop.write();
    }
  }
  await expect(bed.launch({ workflows: [Shop] })).rejects.toMatchObject({ code: 'REGISTRATION_INVALID' });
  const holdfast = await bed.launch({ workflows: [run] });
  const { result } = await start(holdfast, () => runTransaction('write', () => Promise.resolve(), { dataSource: app }));
  await expect(result).rejects.toMatchObject({ code: 'DATA_SOURCE_INVALID' });
  await holdfast.close();
});
