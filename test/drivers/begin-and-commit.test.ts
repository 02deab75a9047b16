import type { Socket } from 'node:net';

import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';

import type { Driver, DriverTransaction } from '../../src/drivers/driver.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { type DriverKind, DRIVER_KINDS } from './driver-kinds.js';
import { ServerActions } from './server-actions.js';

/** Runs a statement with the client that the application has of a transaction. */
async function run(library: DriverKind['library'], client: unknown, text: string, values?: string[]): Promise<unknown> {
  return library === 'pg'
    ? (client as { query(text: string, values?: string[]): Promise<unknown> }).query(text, values)
    : (client as { unsafe(text: string, values?: string[]): Promise<unknown> }).unsafe(text, values);
}

const ignore = (): void => undefined;

/** What a query of its own kind gets from `pg`, as far as it is used here. */
interface RawWire {
  readonly stream: Pick<Socket, 'listeners' | 'off' | 'on' | 'once'>;
  query(text: string): void;
}

/**
 * A query that reads the socket itself, from before it is sent until the server answers; `pg-copy-streams` does so for COPY TO.
 * `answeredWith`: type of the first message that came.
 */
class RawQuery {
  readonly answeredWith: Promise<string>;
  readonly submit: (wire: RawWire) => null;
  handleReadyForQuery: () => void = ignore;
  handleError: (error: Error) => void = ignore;
  readonly handleCommandComplete = ignore;
  readonly handleRowDescription = ignore;
  readonly handleDataRow = ignore;
  readonly callback = ignore;

  constructor(text: string) {
    let answered: (type: string) => void = ignore;
    this.answeredWith = new Promise((resolve) => (answered = resolve));
    this.submit = (wire) => {
      const [reader] = wire.stream.listeners('data') as [(data: Buffer) => void];
      wire.stream.off('data', reader);
      wire.stream.once('data', (data: Buffer) => {
        answered(data.toString('latin1', 0, 1));
        wire.stream.on('data', reader);
        reader(data);
      });
      wire.query(text);
      return null;
    };
  }

  get done(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.handleReadyForQuery = resolve;
      this.handleError = reject;
    });
  }
}

describe.each(DRIVER_KINDS)('$label: BEGIN with the first statement, COMMIT with the last', (kind) => {
  const commits = kind.label === 'pg';
  let database: TestDatabase;
  let server: ServerActions;
  let driver: Driver;
  let close: () => Promise<void>;
  beforeAll(async () => {
    database = await createTestDatabase();
    server = await ServerActions.connect(database.url);
    await server.rows('CREATE TABLE item (id text PRIMARY KEY)');
    await server.rows('CREATE TABLE late (n int UNIQUE DEFERRABLE INITIALLY DEFERRED)');
    ({ driver, close } = await kind.open(database.url, { maxConnections: 1 }));
  });
  afterAll(async () => {
    await close();
    await server.close();
    await database.drop();
  });
  beforeEach(async () => {
    await server.rows('TRUNCATE item, late');
  });

  const items = async (): Promise<unknown[]> =>
    (await server.rows('SELECT id FROM item ORDER BY id')).map((row) => (row as { id: string }).id);
  const insert = (client: unknown, id: string): Promise<unknown> =>
    run(kind.library, client, 'INSERT INTO item VALUES ($1)', [id]);
  const rolledBack = (body: (transaction: DriverTransaction) => Promise<unknown>): Promise<unknown> => {
    const thrown = new Error('from the body');
    const attempt = driver.transaction(async (transaction) => {
      await body(transaction);
      throw thrown;
    });
    return expect(attempt).rejects.toBe(thrown);
  };

  it('whatever kind of statement comes first, it is within the transaction', async () => {
    // Again, with statements that are prepared by now.
    for (let round = 0; round < 2; round++) {
      await rolledBack(({ client }) => insert(client, 'with a parameter'));
      await rolledBack(({ client }) => run(kind.library, client, "INSERT INTO item VALUES ('simple')"));
      await rolledBack(({ client }) => run(kind.library, client, "SELECT 1; INSERT INTO item VALUES ('several')"));
      await rolledBack((transaction) =>
        transaction.query("INSERT INTO item VALUES ('of the driver')", [], { prepare: 'first' }),
      );
      await rolledBack(({ client }) => {
        void insert(client, 'not waited for');
        return run(kind.library, client, "INSERT INTO item VALUES ('behind it')");
      });
      await rolledBack(() => Promise.resolve());
      await driver.transaction(() => Promise.resolve());
    }
    expect(await items()).toEqual([]);
    await driver.transaction(({ client }) => insert(client, 'committed'));
    expect(await items()).toEqual(['committed']);
  });

  it.runIf(kind.library === 'pg')(
    'a first query that reads the connection itself finds its own answer alone',
    async () => {
      for (let round = 0; round < 2; round++) {
        await rolledBack(async ({ client }) => {
          const query = new RawQuery("SELECT 1; INSERT INTO item VALUES ('by itself')");
          const { done } = query;
          (client as { query(query: RawQuery): void }).query(query);
          await done;
          // RowDescription.
          expect(await query.answeredWith).toBe('T');
        });
      }
      expect(await items()).toEqual([]);
      expect(await driver.query('SELECT 1 AS n')).toEqual([{ n: 1 }]);
    },
  );

  it.runIf(commits)('when BEGIN is refused such a query has no effect either', async () => {
    await driver.transaction(({ client }) => insert(client, 'before'));
    const attempt = driver.transaction(
      async ({ client }) => {
        const query = new RawQuery("INSERT INTO item VALUES ('by itself')");
        const { done } = query;
        (client as { query(query: RawQuery): void }).query(query);
        await done.catch(ignore);
        await insert(client, 'second').catch(ignore);
      },
      // More than the server's integers hold.
      { idleTimeoutMs: 2 ** 40 },
    );
    await expect(attempt).rejects.toMatchObject({ code: 'DATABASE_ERROR', sqlState: '22023' });
    expect(await items()).toEqual(['before']);
  });

  it('a first statement that fails is the error of the body, and the connection is whole', async () => {
    for (let round = 0; round < 2; round++) {
      const attempt = driver.transaction(({ client }) => run(kind.library, client, 'SELECT 1 / $1::int', ['0']));
      await expect(attempt).rejects.toMatchObject({ code: '22012' });
      const other = driver.transaction(({ client }) => run(kind.library, client, 'SELEC 1'));
      await expect(other).rejects.toMatchObject({ code: '42601' });
    }
    expect(await driver.query('SELECT 1 AS n')).toEqual([{ n: 1 }]);
  });

  it('when BEGIN is refused nothing of the body takes effect, whatever it does', async () => {
    // The first makes the connection one that is in use.
    await driver.transaction(({ client }) => insert(client, 'before'));
    const attempt = driver.transaction(
      async ({ client }) => {
        await insert(client, 'first').catch(() => undefined);
        await insert(client, 'second').catch(() => undefined);
        await run(kind.library, client, "INSERT INTO item VALUES ('third')").catch(() => undefined);
      },
      // More than the server's integers hold.
      { idleTimeoutMs: 2 ** 40 },
    );
    await expect(attempt).rejects.toMatchObject({ code: 'DATABASE_ERROR', sqlState: '22023' });
    expect(await items()).toEqual(['before']);
    await driver.transaction(({ client }) => insert(client, 'after'));
    expect(await items()).toEqual(['after', 'before']);
  });

  it.runIf(commits)('prepared statements that a body has done away with do not fail a transaction unseen', async () => {
    await driver.transaction(({ client }) => run(kind.library, client, 'DEALLOCATE ALL'));
    // Nothing took effect, and the connection is replaced.
    const attempt = driver.transaction(({ client }) => insert(client, 'never').catch(() => undefined));
    await expect(attempt).rejects.toMatchObject({ code: 'CONNECTION_UNAVAILABLE' });
    await driver.transaction(({ client }) => insert(client, 'again'));
    expect(await items()).toEqual(['again']);
  });

  const last = { prepare: 'last' };

  it.runIf(commits)('a last statement commits with what came before it', async () => {
    for (let round = 0; round < 2; round++) {
      await driver.transaction(async ({ client, commitWith }) => {
        void insert(client, `before ${String(round)}`);
        await commitWith?.('INSERT INTO item VALUES ($1::text)', [`last ${String(round)}`], last);
        expect(await items()).toContain(`last ${String(round)}`);
      });
    }
    await driver.transaction(
      ({ commitWith }) =>
        commitWith?.('INSERT INTO item VALUES ($1::text)', ['alone'], last) ?? Promise.reject(new Error()),
    );
    expect(await items()).toEqual(['alone', 'before 0', 'before 1', 'last 0', 'last 1']);
  });

  it.runIf(commits)('of a last statement that fails, or a COMMIT that does, nothing stays', async () => {
    const with_ = (text: string, value: string) =>
      driver.transaction(async ({ client, commitWith }) => {
        await insert(client, 'before');
        await commitWith?.(text, [value], last);
      });
    for (let round = 0; round < 2; round++) {
      await expect(with_('INSERT INTO item VALUES ($1::text)', 'before')).rejects.toMatchObject({ sqlState: '23505' });
      await expect(with_('INSERT INTO nowhere VALUES ($1::text)', 'x')).rejects.toMatchObject({ sqlState: '42P01' });
      const late = with_('INSERT INTO late VALUES ($1::int4), (1)', '1');
      await expect(late).rejects.toMatchObject({ code: 'DATABASE_ERROR', sqlState: '23505' });
    }
    expect(await items()).toEqual([]);
    expect(await driver.query('SELECT 1 AS n')).toEqual([{ n: 1 }]);
  });

  it.runIf(commits)('a last statement behind one that failed unseen commits nothing', async () => {
    const attempt = driver.transaction(async ({ client, commitWith }) => {
      run(kind.library, client, 'SELECT 1 / $1::int', ['0']).catch(() => undefined);
      await commitWith?.('INSERT INTO item VALUES ($1::text)', ['last'], last);
    });
    await expect(attempt).rejects.toMatchObject({ sqlState: '25P02' });
    expect(await items()).toEqual([]);
  });
});
