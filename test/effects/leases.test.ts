import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  defineWorkflow,
  HoldfastClient,
  runStep,
  type Holdfast,
  type Lease,
  type LeaseOptions,
} from '../../src/index.js';
import { openDriver } from '../../src/drivers/open-driver.js';
import { PostgresLeaseStore } from '../../src/store/postgres/postgres-lease-store.js';
import { defaultSchema } from '../support/conditions.js';
import { createBed, gate, silentLogger, waitUntil, type Bed } from '../support/launch.js';
import { startPgProxyFor } from '../support/pg-proxy.js';

let bed: Bed;
let holdfast: Holdfast;
let other: HoldfastClient;

const inWorkflow = defineWorkflow('inWorkflow', () => holdfast.leases.withLease('no', {}, async () => 1));
const inStep = defineWorkflow('inStep', () =>
  runStep('locked', () => holdfast.leases.withLease('in a step', {}, async ({ token }) => token)),
);

beforeAll(async () => {
  bed = await createBed();
  holdfast = await bed.launch({ workflows: [inWorkflow, inStep] });
  other = await HoldfastClient.connect({ database: bed.database.url, logger: silentLogger });
});
afterAll(async () => {
  await other.close();
  await bed.close();
});

async function heldUntil(name: string): Promise<Date> {
  const { rows } = await bed.sql.query<{ held_until: Date }>(
    'SELECT held_until FROM holdfast.named_lease WHERE name = $1',
    [name],
  );
  return rows[0]?.held_until ?? new Date(0);
}

describe('a named lease', () => {
  test('has one holder at a time, and a higher token for each', async () => {
    const done = gate();
    const first = gate<Lease>();
    const held = holdfast.leases.withLease('one', { ttl: 5_000 }, async (lease) => {
      first.open(lease);
      await done.opened;
      return lease.token;
    });
    const lease = await first.opened;
    expect(lease).toMatchObject({ name: 'one', token: 1, isHeld: true });
    let ran = false;
    await expect(
      other.leases.withLease('one', {}, async () => {
        ran = true;
        return Promise.resolve();
      }),
    ).rejects.toMatchObject({ code: 'LEASE_HELD' });
    expect(ran).toBe(false);
    const waiting = other.leases.withLease('one', { wait: '1h' }, async ({ token }) => Promise.resolve(token));
    done.open();
    expect(await held).toBe(1);
    expect(lease.isHeld).toBe(false);
    expect(await waiting, 'it is given up at once').toBe(2);
  });

  test('is renewed for as long as the work takes', async () => {
    await holdfast.leases.withLease('long', { ttl: 1_500 }, async (lease) => {
      const { rows } = await bed.sql.query(`SELECT held_until FROM holdfast.named_lease WHERE name = 'long'`);
      const first = (rows[0] as { held_until: Date }).held_until;
      await waitUntil(async () => {
        const again = await bed.sql.query(`SELECT held_until > $1::timestamptz + interval '800 ms' AS later
          FROM holdfast.named_lease WHERE name = 'long'`, [first]); // prettier-ignore
        return (again.rows[0] as { later: boolean }).later;
      }, 'it was renewed several times');
      expect(lease.isHeld).toBe(true);
    });
  });

  test('that somebody else takes fires its signal, and the caller is told', async () => {
    const seen: unknown[] = [];
    const lost = holdfast.leases.withLease('stolen', { ttl: 3_000 }, async (lease) => {
      lease.signal.addEventListener('abort', () => seen.push(lease.signal.reason));
      await bed.sql.query(`UPDATE holdfast.named_lease SET held_until = now() - interval '1 s' WHERE name = 'stolen'`);
      await other.leases.withLease('stolen', { ttl: '1h' }, async ({ token }) => {
        expect(token).toBe(2);
        await waitUntil(() => lease.signal.aborted, 'the first holder has noticed');
      });
      expect(lease.isHeld).toBe(false);
    });
    await expect(lost).rejects.toMatchObject({ code: 'LEASE_LOST' });
    expect(seen).toMatchObject([{ code: 'LEASE_LOST' }]);
  });

  test('that cannot be renewed in time is lost before anybody else can have it', async () => {
    const proxy = await startPgProxyFor(bed.database.url);
    const cut = await HoldfastClient.connect({
      database: proxy.connectionString(bed.database.url),
      logger: silentLogger,
      notifications: false,
    });
    const order: string[] = [];
    const lost = cut.leases.withLease('cut off', { ttl: 600 }, async (lease) => {
      proxy.arm({ do: 'black-hole' }, /renew_lease/, { times: 1_000 });
      lease.signal.addEventListener('abort', () => order.push('lost'));
      await holdfast.leases.withLease('cut off', { wait: '20s' }, async ({ token }) => {
        order.push(`taken with ${String(token)}`);
        return Promise.resolve();
      });
    });
    await expect(lost).rejects.toMatchObject({ code: 'LEASE_LOST' });
    expect(order).toEqual(['lost', 'taken with 2']);
    await proxy.close();
    await cut.close();
  });

  test('whose renewal got onto a connection that carries nothing any more is renewed on another one', async () => {
    const proxy = await startPgProxyFor(bed.database.url);
    const client = await HoldfastClient.connect({
      database: proxy.connectionString(bed.database.url),
      logger: silentLogger,
      notifications: false,
    });
    const held = await client.leases.withLease('half-open', { ttl: 9_000 }, async (lease) => {
      const before = await heldUntil('half-open');
      const swallowed = proxy.arm({ do: 'black-hole' }, /renew_lease/);
      await swallowed.happened;
      await waitUntil(
        async () => lease.signal.aborted || (await heldUntil('half-open')) > before,
        'it is renewed, or lost',
        20_000,
      );
      return lease.isHeld;
    });
    expect(held).toBe(true);
    await client.close();
    await proxy.close();
  });

  test('whose acquisition was answered by nobody is the same when it is asked for again (C9)', async () => {
    const proxy = await startPgProxyFor(bed.database.url);
    const cut = await HoldfastClient.connect({
      database: proxy.connectionString(bed.database.url),
      logger: silentLogger,
      notifications: false,
    });
    const fault = proxy.arm({ do: 'drop-reply', reset: true }, /acquire_lease/);
    const token = await cut.leases.withLease('unanswered', { wait: '20s' }, async (lease) =>
      Promise.resolve(lease.token),
    );
    expect(fault.hits).toBe(1);
    expect(token).toBe(1);
    await cut.close();
    await proxy.close();
  });

  test('is not for a workflow itself, but for its steps', async () => {
    await expect((await holdfast.start(inWorkflow, {})).result()).rejects.toMatchObject({ code: 'OUTSIDE_WORKFLOW' });
    expect(await (await holdfast.start(inStep, {})).result()).toBe(1);
  });

  test.each([
    ['', {}],
    ['x'.repeat(256), {}],
    ['a\0b', {}],
    ['short', { ttl: 99 }],
    ['misspelt', { tll: 1_000 }],
    ['negative', { wait: -1 }],
  ])('%j with %j is refused', async (name, options) => {
    await expect(
      holdfast.leases.withLease(name, options as LeaseOptions, async () => Promise.resolve()),
    ).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
    });
  });

  test('that was given up is not held again by a renewal that arrives behind', async () => {
    const driver = await openDriver(bed.database.url);
    const store = new PostgresLeaseStore({ driver, schema: defaultSchema() });
    const [holder, next] = [randomUUID(), randomUUID()];
    const ttlMs = 600_000;
    await store.acquire({ name: 'overtaken', holder, heldBy: 'first', ttlMs });
    expect(await store.renew('overtaken', holder, ttlMs)).toBe(true);
    expect(await store.renew('overtaken', holder, 0)).toBe(true);
    expect(await store.renew('overtaken', holder, ttlMs)).toBe(false);
    expect(await store.acquire({ name: 'overtaken', holder: next, heldBy: 'second', ttlMs })).toEqual({
      kind: 'acquired',
      token: 2,
    });
    await driver.close();
  });

  test('is given up when its Holdfast closes', async () => {
    const closing = await HoldfastClient.connect({ database: bed.database.url, logger: silentLogger });
    const begun = gate();
    const work = closing.leases.withLease('closing', { ttl: '1h' }, async ({ signal }) => {
      begun.open();
      await new Promise((resolve) => {
        signal.addEventListener('abort', resolve);
      });
    });
    const outcome = work.catch((error: unknown) => error);
    await begun.opened;
    await closing.close();
    expect(await outcome).toMatchObject({ code: 'CLOSED' });
    await holdfast.leases.withLease('closing', {}, async () => Promise.resolve());
  });
});

describe('a leader', () => {
  test('is one at a time, and another one takes over when it is lost', async () => {
    const terms: string[] = [];
    const [stopOne, stopTwo] = [new AbortController(), new AbortController()];
    const lead =
      (who: string) =>
      async ({ signal, token }: Lease): Promise<void> => {
        terms.push(`${who} ${String(token)}`);
        await new Promise((resolve) => {
          signal.addEventListener('abort', resolve);
        });
      };
    const one = holdfast.leases.whileLeader('leader', { ttl: 300, signal: stopOne.signal }, lead('one'));
    await waitUntil(() => terms.length === 1, 'one leads');
    const two = other.leases.whileLeader('leader', { ttl: 300, signal: stopTwo.signal }, lead('two'));
    await pause(100);
    expect(terms).toEqual(['one 1']);
    stopOne.abort();
    await one;
    await waitUntil(() => terms.length === 2, 'two leads');
    // Lost, not stopped: it is a candidate again.
    await bed.sql.query(`UPDATE holdfast.named_lease SET holder = gen_random_uuid(), token = token + 1,
      held_until = now() WHERE name = 'leader'`); // prettier-ignore
    await waitUntil(() => terms.length === 3, 'two leads again');
    expect(terms).toEqual(['one 1', 'two 2', 'two 4']);
    stopTwo.abort();
    await two;
  });

  test('that returns has ended its leadership; what it throws is passed on', async () => {
    await holdfast.leases.whileLeader('returns', {}, async () => Promise.resolve());
    const failing = holdfast.leases.whileLeader('throws', {}, async () => Promise.reject(new RangeError('mine')));
    await expect(failing).rejects.toThrow(RangeError);
    await other.leases.withLease('throws', {}, async () => Promise.resolve());
  });
});

describe('a fence', () => {
  test('accepts no token after a higher one, with pg', async () => {
    const client = new pg.Client({ connectionString: bed.database.url });
    await client.connect();
    const accept = (token: number) => holdfast.leases.acceptFence({ transaction: client, resource: 'account', token });
    await client.query('BEGIN');
    await accept(7);
    await accept(7);
    await client.query('COMMIT');
    await client.query('BEGIN');
    await expect(accept(6)).rejects.toMatchObject({ code: 'FENCE_REFUSED', accepted: 7 });
    await client.query('ROLLBACK');
    await client.end();
  });

  test('accepts no token after a higher one, with postgres', async () => {
    const sql = postgres(bed.database.url, { max: 1 });
    await sql.begin((transaction) => other.leases.acceptFence({ transaction, resource: 'ledger "🏦"', token: 3 }));
    const refused = sql.begin((transaction) =>
      other.leases.acceptFence({ transaction, resource: 'ledger "🏦"', token: 2 }),
    );
    await expect(refused).rejects.toMatchObject({ code: 'FENCE_REFUSED', accepted: 3 });
    await sql.end();
  });

  test('an older token that comes while a newer one is being accepted waits for it, and is refused', async () => {
    const [newer, older] = [
      new pg.Client({ connectionString: bed.database.url }),
      new pg.Client({ connectionString: bed.database.url }),
    ];
    await Promise.all([newer.connect(), older.connect()]);
    await newer.query('BEGIN');
    await newer.query(`SELECT holdfast.accept_fence('race', 2)`);
    await older.query('BEGIN');
    const { rows } = await older.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
    const refused = expect(
      holdfast.leases.acceptFence({ transaction: older, resource: 'race', token: 1 }),
    ).rejects.toMatchObject({ accepted: 2 });
    await waitUntil(async () => {
      const waits = await bed.sql.query('SELECT FROM pg_stat_activity WHERE pid = $1 AND wait_event_type = $2', [
        rows[0]?.pid,
        'Lock',
      ]);
      return waits.rows.length === 1;
    }, 'the older one waits');
    await newer.query('COMMIT');
    await refused;
    await Promise.all([newer.end(), older.end()]);
  });

  test('a transaction that is rolled back has accepted nothing', async () => {
    await bed.sql.query('BEGIN');
    await bed.sql.query(`SELECT holdfast.accept_fence('rolled back', 9)`);
    await bed.sql.query('ROLLBACK');
    await bed.sql.query(`SELECT holdfast.accept_fence('rolled back', 1)`);
  });

  test.each([-1, 1.5, NaN, 2 ** 60])('token %d is refused', async (token) => {
    await expect(holdfast.leases.acceptFence({ transaction: bed.sql, resource: 'bad', token })).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
    });
  });
});
