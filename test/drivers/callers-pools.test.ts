import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import pg from 'pg';
import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';

import { openDriver } from '../../src/drivers/open-driver.js';
import { createPgDriver } from '../../src/drivers/pg-driver.js';
import { createPostgresDriver } from '../../src/drivers/postgres-driver.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { gate } from '../support/launch.js';
import { ServerActions, until } from './server-actions.js';

let database: TestDatabase;
let server: ServerActions;
beforeAll(async () => {
  database = await createTestDatabase();
  server = await ServerActions.connect(database.url);
});
afterAll(async () => {
  await server.close();
  await database.drop();
});

/** One of the server's messages. */
function message(type: string, body: Buffer): Buffer {
  const head = Buffer.alloc(5);
  head.write(type);
  head.writeInt32BE(4 + body.length, 1);
  return Buffer.concat([head, body]);
}

describe("a caller's pg pool", () => {
  it('C56 gets an error listener while the driver is open if it has none, and loses it afterwards', async () => {
    const pool = new pg.Pool({ connectionString: database.url });
    const driver = await createPgDriver({ pool });
    expect(pool.listenerCount('error')).toBe(1);
    await driver.query('SELECT 1');
    await server.killOthers();
    await until('the pool has noticed', () => pool.totalCount === 0);
    expect(await driver.query('SELECT 1 AS n')).toEqual([{ n: 1 }]);
    await driver.close();
    expect(pool.listenerCount('error')).toBe(0);
    await pool.end();
  });

  it('keeps the listeners that it has', async () => {
    const pool = new pg.Pool({ connectionString: database.url });
    pool.on('error', () => undefined);
    const driver = await createPgDriver({ pool });
    expect(pool.listenerCount('error')).toBe(1);
    await driver.close();
    expect(pool.listenerCount('error')).toBe(1);
    await pool.end();
  });

  it('is not ended with the driver, and gets its clients back as they were', async () => {
    const pool = new pg.Pool({ connectionString: database.url, max: 1 });
    const driver = await createPgDriver({ pool });
    await driver.query('SELECT $1::int4', [1], { prepare: 'x' });
    await driver.transaction((transaction) => transaction.query('SELECT 1'));
    await driver.close();
    const client = await pool.connect();
    expect(client.listenerCount('error')).toBe(0);
    expect((await client.query('SELECT 1 AS n')).rows).toEqual([{ n: 1 }]);
    client.release();
    await pool.end();
  });

  it('C56 that was ended is said to be, at once', async () => {
    const pool = new pg.Pool({ connectionString: database.url });
    const driver = await createPgDriver({ pool });
    await driver.query('SELECT 1');
    const running = driver.query("SELECT 'in flight' AS v FROM pg_sleep(0.05)");
    await until('the statement runs', () => pool.idleCount === 0);
    const ended = pool.end();
    await expect(driver.query('SELECT 1')).rejects.toMatchObject({ code: 'POOL_ENDED' });
    expect(await running).toEqual([{ v: 'in flight' }]);
    await ended;
    await expect(driver.transaction(() => Promise.resolve())).rejects.toMatchObject({ code: 'POOL_ENDED' });
    await driver.close();
  });

  it('may get clients that the server ends with the packet that lets them in: that does not end the process', async () => {
    const letsInAndEnds = createServer((socket) => {
      socket.on('error', () => undefined);
      socket.once('data', () =>
        socket.end(
          Buffer.concat([
            message('R', Buffer.alloc(4)),
            message('K', Buffer.alloc(8)),
            message('Z', Buffer.from('I')),
            message('E', Buffer.from('SFATAL\0VFATAL\0C57P01\0Mterminating connection\0\0')),
          ]),
        ),
      );
    });
    letsInAndEnds.listen(0, '127.0.0.1');
    await once(letsInAndEnds, 'listening');
    const { port } = letsInAndEnds.address() as AddressInfo;
    const pool = new pg.Pool({ host: '127.0.0.1', port, user: 'u', database: 'd' });
    const driver = await createPgDriver({ pool });
    await expect(driver.query('SELECT 1')).rejects.toMatchObject({ code: 'CONNECTION_UNAVAILABLE' });
    await driver.close();
    await pool.end();
    letsInAndEnds.close();
  });

  it('can be used up by the caller without taking the listener down', async () => {
    const pool = new pg.Pool({ connectionString: database.url, max: 1 });
    const driver = await createPgDriver({ pool });
    const client = await pool.connect();
    let isListening = false;
    const stream = driver.listen(['c'], {
      onListening: () => void (isListening = true),
      onNotification: () => undefined,
      onLost: () => undefined,
    });
    await until('it listens', () => isListening);
    await stream.close();
    client.release();
    await driver.close();
    await pool.end();
  });

  it.each([1, 2])(
    'of %i gives us a client that who is urgent gets, whoever of us has asked for it, before others who use the pool',
    async (max) => {
      const pool = new pg.Pool({ connectionString: database.url, max });
      const driver = await createPgDriver({ pool });
      await Promise.all([1, 2].map(() => driver.query('SELECT pg_sleep(0.01)')));
      const held = await Promise.all(Array.from({ length: max }, () => pool.connect()));
      const order: string[] = [];
      const note = (name: string) => (): void => void order.push(name);
      const ordinary = driver.query('SELECT 1').then(note('ordinary'));
      const urgent = driver.query('SELECT 1', [], { isUrgent: true }).then(note('urgent'));
      await until('whoever has a turn has asked', () => pool.waitingCount === max);
      const others = [1, 2].map(async () => {
        const client = await pool.connect();
        note('application')();
        await client.query('SELECT 1');
        client.release();
      });
      held[0]?.release();
      await Promise.all([ordinary, urgent, ...others]);
      expect(order.filter((name) => name !== 'ordinary')).toEqual(['urgent', 'application', 'application']);
      expect(order.indexOf('urgent')).toBeLessThan(order.indexOf('ordinary'));
      for (const client of held.slice(1)) client.release();
      expect(await driver.query('SELECT 1 AS n')).toEqual([{ n: 1 }]);
      expect(pool.waitingCount).toBe(0);
      await driver.close();
      await pool.end();
    },
  );

  it('whose clients are all in use keeps nobody waiting who closes the driver, or ends the pool', async () => {
    for (const isEnded of [false, true]) {
      const pool = new pg.Pool({ connectionString: database.url, max: 2 });
      const driver = await createPgDriver({ pool });
      const held = await pool.connect();
      const begun = gate();
      const go = gate();
      const running = driver.transaction(async (transaction) => {
        await transaction.query('SELECT 1');
        begun.open();
        await go.opened;
      });
      await begun.opened;
      const waiting = [1, 2, 3].map((n) => driver.query('SELECT 1', [], { isUrgent: n === 3 }));
      const code = isEnded ? 'POOL_ENDED' : 'CONNECTION_UNAVAILABLE';
      const refused = waiting.map((query) => expect(query).rejects.toMatchObject({ code }));
      await until('one of them has asked', () => pool.waitingCount > 0);
      const over = isEnded ? pool.end() : driver.close();
      // What the pool hears of its end is a client that is gone.
      if (isEnded) held.release();
      await Promise.all(refused);
      go.open();
      await running;
      if (!isEnded) held.release();
      await over;
      await (isEnded ? driver.close() : pool.end());
    }
  });

  it("has types of the application's that do not reach our rows", async () => {
    const pool = new pg.Pool({
      connectionString: database.url,
      types: { getTypeParser: () => () => 'spoilt' } as unknown as pg.CustomTypesConfig,
    });
    const driver = await createPgDriver({ pool });
    expect(await driver.query('SELECT 1 AS n, true AS b')).toEqual([{ n: 1, b: true }]);
    await driver.close();
    await pool.end();
  });
});

describe("a caller's sql", () => {
  it('is neither ended with the driver nor ends it', async () => {
    const sql = postgres(database.url);
    const first = await createPostgresDriver({ sql });
    await first.query('SELECT 1');
    await first.close();
    expect(await sql`SELECT 1 AS n`).toMatchObject([{ n: 1 }]);
    const second = await createPostgresDriver({ sql });
    await sql.end();
    expect(await second.query('SELECT 1 AS n')).toEqual([{ n: 1 }]);
    await second.close();
  });

  it("has types that reach its transactions' client, and not our rows", async () => {
    const spoilt = { to: 23, from: [23], serialize: String, parse: () => 'spoilt' };
    const sql = postgres(database.url, { types: { spoilt }, transform: { value: { from: () => 'spoilt' } } });
    const driver = await createPostgresDriver({ sql });
    await driver.transaction(async (transaction) => {
      const client = transaction.client as postgres.TransactionSql;
      expect(await client`SELECT 1::int4 AS n`).toMatchObject([{ n: 'spoilt' }]);
      expect(await transaction.query('SELECT 1::int4 AS n')).toEqual([{ n: 1 }]);
    });
    await driver.close();
    await sql.end();
  });

  it("has arrays of any type in its transactions' client, as its users are used to", async () => {
    await server.rows("CREATE TYPE mood AS ENUM ('so so', 'fine')");
    const sql = postgres(database.url);
    for (const options of [{ sql }, { connectionString: database.url }]) {
      const driver = await createPostgresDriver(options);
      await driver.transaction(async (transaction) => {
        const client = transaction.client as postgres.TransactionSql;
        const texts = ['a"\\', 'NULL', '', ',{}', 'é\n'];
        const [row] = await client`SELECT ${texts}::text[] AS texts, ${[1, 2]}::int4[] AS numbers,
          ${['so so', 'fine']}::mood[] AS moods, ARRAY[[1, NULL], [3, 4]] AS nested, '{}'::text[] AS empty,
          ARRAY['(1,2),(0,0)', '(4,3),(0,0)']::box[] AS boxes, ${client.array([true, false])} AS flags`;
        expect(row).toEqual({
          texts,
          numbers: [1, 2],
          moods: ['so so', 'fine'],
          nested: [
            [1, null],
            [3, 4],
          ],
          empty: [],
          boxes: ['(1,2),(0,0)', '(4,3),(0,0)'],
          flags: [true, false],
        });
      });
      await driver.close();
    }
    await sql.end();
  });

  it('that renames columns is refused', async () => {
    const sql = postgres(database.url, { transform: postgres.camel });
    await expect(createPostgresDriver({ sql })).rejects.toMatchObject({ code: 'DRIVER_CONFIGURATION' });
    await sql.end();
  });

  it('can prepare and forget statements inside a transaction, whose COMMIT is still a COMMIT', async () => {
    await server.rows('CREATE TABLE forgotten (id int4)');
    const driver = await createPostgresDriver({ connectionString: database.url, maxConnections: 1 });
    for (let n = 0; n < 3; n++) {
      await driver.transaction(async (transaction) => {
        await transaction.query('INSERT INTO forgotten VALUES ($1::int4)', [n]);
        await transaction.query('DEALLOCATE ALL');
      });
    }
    expect(await server.rows('SELECT id FROM forgotten ORDER BY id')).toEqual([{ id: 0 }, { id: 1 }, { id: 2 }]);
    await driver.close();
  });
});

describe('openDriver', () => {
  it('recognises what it is given', async () => {
    const pool = new pg.Pool({ connectionString: database.url });
    const sql = postgres(database.url);
    const drivers = await Promise.all([openDriver(pool), openDriver(sql), openDriver(database.url)]);
    expect(drivers.map((driver) => driver.name)).toEqual(['pg', 'postgres', 'pg']);
    for (const driver of drivers) {
      expect(await driver.query('SELECT 1 AS n')).toEqual([{ n: 1 }]);
      await driver.close();
    }
    await Promise.all([pool.end(), sql.end()]);
    await expect(openDriver({} as never)).rejects.toMatchObject({ code: 'DRIVER_CONFIGURATION' });
  });

  it('takes the library that is installed, and says so when none is', async () => {
    const absent = () => {
      throw Object.assign(new Error('not installed'), { code: 'ERR_MODULE_NOT_FOUND' });
    };
    vi.doMock('pg', absent);
    const driver = await openDriver(database.url);
    expect(driver.name).toBe('postgres');
    await driver.close();
    vi.doMock('postgres', absent);
    await expect(openDriver(database.url)).rejects.toMatchObject({ code: 'DRIVER_CONFIGURATION' });
    vi.doUnmock('pg');
    vi.doUnmock('postgres');
  });
});
