import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import type { Driver, SqlParameter } from '../../src/drivers/driver.js';
import type { DriverOptions } from '../../src/drivers/driver-options.js';
import type { OpenedDriver } from './driver-kinds.js';

/** What the suite needs to know about a driver. */
export interface ConformanceSubject {
  readonly label: string;
  readonly library: 'pg' | 'postgres';
  /** Opens a driver on a database of the test file's own, in which tables can be made. */
  open(options?: DriverOptions): Promise<OpenedDriver>;
}

const ODD_TEXTS = [
  '',
  ' ',
  'NULL',
  'null',
  '"',
  '\\',
  '\\"',
  "'",
  ',',
  '{}',
  '{a,b}',
  'a\nb\t',
  '😀 é',
  '\\N',
  '"a","b"',
];

/** What every driver promises, however it reaches the server. */
export function describeConformance(subject: ConformanceSubject): void {
  describe(`${subject.label} conforms`, () => {
    let opened: OpenedDriver;
    let driver: Driver;

    beforeAll(async () => {
      opened = await subject.open();
      driver = opened.driver;
      await driver.query(
        `DROP TABLE IF EXISTS item, late;
         CREATE TABLE item (id text PRIMARY KEY, n int4 CONSTRAINT positive CHECK (n > 0));
         CREATE TABLE late (id int4 UNIQUE DEFERRABLE INITIALLY DEFERRED)`,
      );
    });
    afterAll(() => opened.close());

    describeValues(() => driver);
    describeStatements(() => driver);
    describeTransactions(() => driver, subject);
    describeLimits(subject);
  });
}

function describeValues(driver: () => Driver): void {
  const roundTrips: [type: string, values: SqlParameter[]][] = [
    ['text', [...ODD_TEXTS, 'x'.repeat(100_000), null]],
    ['int4', [0, 1, -1, 2_147_483_647, -2_147_483_648, null]],
    ['float8', [0, 0.1, -1.5e300, 5e-324, 1764430000.123457, Infinity, -Infinity, NaN, null]],
    ['bool', [true, false, null]],
    ['uuid', ['018f3a5e-0000-7000-8000-000000000001', null]],
    ['text[]', [[], ODD_TEXTS, [null, 'a', null], [null]]],
    ['uuid[]', [[], ['018f3a5e-0000-7000-8000-000000000001', null]]],
    ['int4[]', [[], [0, -1, null, 2_147_483_647]]],
    ['float8[]', [[], [0.1, null, Infinity, -Infinity, NaN, 1e-7]]],
    ['bool[]', [[], [true, null, false]]],
  ];
  for (const prepare of [undefined, 'conformance']) {
    const options = prepare === undefined ? {} : { prepare };
    const how = prepare === undefined ? 'sent unprepared' : 'sent prepared';
    it.each(roundTrips)(`a value of type %s comes back as it was ${how}`, async (type, values) => {
      for (const value of values) {
        const rows = await driver().query(`SELECT $1::${type} AS value`, [value], options);
        expect(rows).toEqual([{ value }]);
      }
    });
  }

  it('a JSON text is sent as it is', async () => {
    const rows = await driver().query("SELECT ($1::jsonb)->>'a' AS a, ($1::json)::text AS whole", ['{"a": "b"}']);
    expect(rows).toEqual([{ a: 'b', whole: '{"a": "b"}' }]);
  });

  it('bytes reach the server unchanged', async () => {
    const bytes = Uint8Array.from({ length: 256 }, (_, index) => index);
    const part = bytes.subarray(10, 200);
    const rows = await driver().query("SELECT encode($1::bytea, 'hex') AS hex", [part]);
    expect(rows).toEqual([{ hex: Buffer.from(part).toString('hex') }]);
  });

  it('an array of ten thousand texts comes back whole', async () => {
    const texts = Array.from({ length: 10_000 }, (_, index) => `${index}"\\,${ODD_TEXTS[index % ODD_TEXTS.length]}`);
    expect(await driver().query('SELECT $1::text[] AS texts', [texts])).toEqual([{ texts }]);
  });

  it('parallel arrays are unnested row by row', async () => {
    const rows = await driver().query(
      'SELECT a, n, b FROM unnest($1::text[], $2::int4[], $3::bool[]) AS t (a, n, b)',
      [
        ['x', null],
        [1, 2],
        [null, true],
      ],
      { prepare: 'conformance' },
    );
    expect(rows).toEqual([
      { a: 'x', n: 1, b: null },
      { a: null, n: 2, b: true },
    ]);
  });
}

function describeStatements(driver: () => Driver): void {
  it('a statement without rows returns none', async () => {
    expect(await driver().query('SELECT 1 AS n WHERE false')).toEqual([]);
    expect(await driver().query('SET application_name = holdfast')).toEqual([]);
    expect(await driver().query('DELETE FROM item WHERE id = $1::text', ['absent'], { prepare: 'gone' })).toEqual([]);
  });

  it('a text without parameters may hold several statements', async () => {
    await driver().query("INSERT INTO item VALUES ('s1', 1); INSERT INTO item VALUES ('s2', 2)");
    expect(await driver().query("SELECT id FROM item WHERE id LIKE 's_' ORDER BY id")).toEqual([
      { id: 's1' },
      { id: 's2' },
    ]);
  });

  it('hundreds of statements at once share the connections, prepared ones too', async () => {
    const numbers = Array.from({ length: 400 }, (_, index) => index);
    const results = await Promise.all(
      numbers.map((n) => driver().query('SELECT $1::int4 AS n', [n], n % 2 === 0 ? { prepare: 'many' } : {})),
    );
    expect(results.map((rows) => rows[0]?.['n'])).toEqual(numbers);
  });

  it('two texts prepared under one name do not get mixed up', async () => {
    for (let round = 0; round < 20; round++) {
      expect(await driver().query("SELECT $1::text || '-a' AS v", ['x'], { prepare: 'same' })).toEqual([{ v: 'x-a' }]);
      expect(await driver().query("SELECT $1::text || '-b' AS v", ['x'], { prepare: 'same' })).toEqual([{ v: 'x-b' }]);
    }
  });

  it("a server's refusal is a DatabaseError with its SQLSTATE and constraint, and the driver goes on", async () => {
    const insert = (n: number) =>
      driver().query('INSERT INTO item VALUES ($1::text, $2::int4)', ['constrained', n], { prepare: 'insert' });
    for (let round = 0; round < 30; round++) {
      await expect(insert(-1)).rejects.toMatchObject({
        code: 'DATABASE_ERROR',
        sqlState: '23514',
        constraint: 'positive',
      });
      await expect(driver().query('SELEC 1')).rejects.toMatchObject({ code: 'DATABASE_ERROR', sqlState: '42601' });
    }
    await insert(1);
    await expect(insert(1)).rejects.toMatchObject({ sqlState: '23505', constraint: 'item_pkey' });
  });
}

function describeTransactions(driver: () => Driver, subject: ConformanceSubject): void {
  const readItem = async (id: string) => driver().query('SELECT n FROM item WHERE id = $1::text', [id]);
  const insertItem = 'INSERT INTO item VALUES ($1::text, 1)';

  it('a transaction commits what its body did, and returns what it returned', async () => {
    const result = await driver().transaction(async (transaction) => {
      await transaction.query(insertItem, ['committed'], { prepare: 'tx_insert' });
      expect(await readItem('committed')).toEqual([]);
      return 'done';
    });
    expect(result).toBe('done');
    expect(await readItem('committed')).toEqual([{ n: 1 }]);
  });

  it('a transaction whose body throws is rolled back, and the error is the one thrown', async () => {
    const thrown = new TypeError('from the body');
    const attempt = driver().transaction(async (transaction) => {
      await transaction.query(insertItem, ['thrown']);
      throw thrown;
    });
    await expect(attempt).rejects.toBe(thrown);
    expect(await readItem('thrown')).toEqual([]);
  });

  it('a body that swallows the failure of a statement cannot commit', async () => {
    const attempt = driver().transaction(async (transaction) => {
      await transaction.query(insertItem, ['swallowed']);
      await transaction.query('SELECT 1/0').catch(() => undefined);
    });
    await expect(attempt).rejects.toMatchObject({ code: 'DATABASE_ERROR' });
    expect(await readItem('swallowed')).toEqual([]);
  });

  it('a constraint that fails at COMMIT is a DatabaseError', async () => {
    const attempt = driver().transaction((transaction) =>
      transaction.query('INSERT INTO late VALUES (1), (1)').then(() => undefined),
    );
    await expect(attempt).rejects.toMatchObject({ code: 'DATABASE_ERROR', sqlState: '23505' });
  });

  it('a transaction has the modes that were asked for, and read committed, read write by default', async () => {
    const modes = (options: Parameters<Driver['transaction']>[1]) =>
      driver().transaction(
        (transaction) =>
          transaction.query(`SELECT current_setting('transaction_isolation') AS isolation,
            current_setting('transaction_read_only') AS read_only,
            current_setting('idle_in_transaction_session_timeout') AS idle`),
        options,
      );
    expect(await modes({})).toMatchObject([{ isolation: 'read committed', read_only: 'off' }]);
    expect(await modes({ isolation: 'serializable', access: 'read only', idleTimeoutMs: 12_345 })).toEqual([
      { isolation: 'serializable', read_only: 'on', idle: '12345ms' },
    ]);
    expect(await modes({ isolation: 'repeatable read' })).toMatchObject([{ isolation: 'repeatable read' }]);
  });

  it("the transaction's client is the one that the user's library knows", async () => {
    await driver().transaction(async ({ client }) => {
      if (subject.library === 'pg') {
        await (client as { query(text: string): Promise<unknown> }).query("INSERT INTO item VALUES ('client', 1)");
      } else {
        const sql = client as {
          savepoint<T>(body: (sql: { unsafe(text: string): Promise<T> }) => Promise<T>): Promise<T>;
        };
        await sql.savepoint((nested) => nested.unsafe("INSERT INTO item VALUES ('client', 1)"));
      }
    });
    expect(await readItem('client')).toEqual([{ n: 1 }]);
  });

  it('statements of a transaction are sent in the order of the calls, and belong to it even if nobody waits', async () => {
    let unawaited: Promise<unknown> | undefined;
    await driver().transaction(async (transaction) => {
      const numbers = Array.from({ length: 20 }, (_, index) => index);
      const all = numbers.map((n) => transaction.query('SELECT $1::int4 AS n', [n], { prepare: 'order' }));
      expect((await Promise.all(all)).map((rows) => rows[0]?.['n'])).toEqual(numbers);
      void transaction.query(insertItem, ['unawaited 1']);
      unawaited = transaction.query(insertItem, ['unawaited 2']);
    });
    await unawaited;
    expect(await readItem('unawaited 1')).toEqual([{ n: 1 }]);
    expect(await readItem('unawaited 2')).toEqual([{ n: 1 }]);
  });

  it('a statement sent after its transaction is over is refused', async () => {
    let late: (() => Promise<unknown>) | undefined;
    await driver().transaction(async (transaction) => {
      late = () => transaction.query(insertItem, ['late']);
      await transaction.query('SELECT 1');
    });
    if (late === undefined) throw new Error('the body did not run');
    await expect(late()).rejects.toMatchObject({ code: 'CONNECTION_UNAVAILABLE' });
    expect(await readItem('late')).toEqual([]);
  });
}

function describeLimits(subject: ConformanceSubject): void {
  it('all rows, and only those, come back after a statement that failed in the midst of its rows', async () => {
    const single = await subject.open({ maxConnections: 1 });
    try {
      const failing = single.driver.query('SELECT 1 / (3 - g) AS n FROM generate_series(1, 5) g');
      await expect(failing).rejects.toMatchObject({ code: 'DATABASE_ERROR', sqlState: '22012' });
      const rows = await single.driver.query('SELECT g::int4 AS n FROM generate_series(1, 2) g');
      expect(Object.keys(rows)).toEqual(['0', '1']);
      expect(rows).toEqual([{ n: 1 }, { n: 2 }]);
    } finally {
      await single.close();
    }
  });

  it('a statement that takes too long is given up with an unknown outcome, and the driver goes on', async () => {
    const { driver, close } = await subject.open({ maxConnections: 1 });
    await driver.query('SELECT 1');
    for (let round = 0; round < 3; round++) {
      const attempt = driver.query('SELECT pg_sleep(5)', [], { timeoutMs: 50 });
      await expect(attempt).rejects.toMatchObject({ code: 'CONNECTION_LOST' });
      expect(await driver.query('SELECT 1 AS n')).toEqual([{ n: 1 }]);
    }
    await close();
  });

  it('a statement that finds no free connection in time was not sent', async () => {
    const { driver, close } = await subject.open({ maxConnections: 1 });
    await driver.transaction(async (transaction) => {
      await transaction.query('SELECT 1');
      const attempt = driver.query("INSERT INTO item VALUES ('waiting', 1)", [], { timeoutMs: 50 });
      await expect(attempt).rejects.toMatchObject({ code: 'CONNECTION_UNAVAILABLE' });
    });
    expect(await driver.query("SELECT 1 AS n FROM item WHERE id = 'waiting'")).toEqual([]);
    await close();
  });

  it('who is urgent gets the next free connection, before those who wait for longer; the others keep their order', async () => {
    const { driver, close } = await subject.open({ maxConnections: 1 });
    const order: string[] = [];
    const ask = async (name: string, isUrgent?: boolean): Promise<void> => {
      await driver.query('SELECT 1', [], isUrgent === undefined ? {} : { isUrgent });
      order.push(name);
    };
    let waiting: readonly Promise<void>[] = [];
    await driver.transaction(async (transaction) => {
      await transaction.query('SELECT 1');
      const tooLate = driver.query('SELECT 1', [], { isUrgent: true, timeoutMs: 20 });
      waiting = [ask('first'), ask('second'), ask('urgent', true), ask('third', false), ask('also urgent', true)];
      await expect(tooLate).rejects.toMatchObject({ code: 'CONNECTION_UNAVAILABLE' });
    });
    await Promise.all(waiting);
    expect(order).toEqual(['urgent', 'also urgent', 'first', 'second', 'third']);
    await close();
  });

  it('connections are not lost with those who gave up waiting, failed, or were cut off', async () => {
    const { driver, close } = await subject.open({ maxConnections: 2 });
    for (let round = 0; round < 3; round++) {
      const slow = [1, 2, 3, 4].map(() => driver.query('SELECT pg_sleep(10)', [], { timeoutMs: 100 }));
      const wrong = [1, 2, 3].map(() => driver.query('SELECT 1 / 0'));
      for (const { status } of await Promise.allSettled([...slow, ...wrong])) expect(status).toBe('rejected');
    }
    const both = await Promise.all(
      [1, 2].map(() => driver.transaction((transaction) => transaction.query('SELECT pg_backend_pid() AS pid'))),
    );
    expect(both).toHaveLength(2);
    await close();
  });

  it('a driver can be closed twice, and refuses what comes after', async () => {
    const { driver, close } = await subject.open();
    await driver.query('SELECT 1');
    await Promise.all([driver.close(), driver.close()]);
    await expect(driver.query('SELECT 1')).rejects.toMatchObject({ code: 'CONNECTION_UNAVAILABLE' });
    await expect(driver.transaction(() => Promise.resolve())).rejects.toMatchObject({ code: 'CONNECTION_UNAVAILABLE' });
    await close();
  });
}
