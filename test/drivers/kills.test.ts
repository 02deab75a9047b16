import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import type { Driver } from '../../src/drivers/driver.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { DRIVER_KINDS } from './driver-kinds.js';
import { ServerActions, until } from './server-actions.js';

const KILLS = 15;
const MAX_CONNECTIONS = 4;

describe.each(DRIVER_KINDS)('$label', (kind) => {
  let database: TestDatabase;
  let server: ServerActions;
  beforeAll(async () => {
    database = await createTestDatabase();
    server = await ServerActions.connect(database.url);
    await server.rows('CREATE TABLE pair (id text PRIMARY KEY, half text); CREATE TABLE seen (id text)');
  });
  afterAll(async () => {
    await server.close();
    await database.drop();
  });

  it('survives the loss of all connections, again and again, and leaks none', async () => {
    const { driver, close } = await kind.open(database.url, { maxConnections: MAX_CONNECTIONS });
    const acknowledged: string[] = [];
    const failures: unknown[] = [];
    let isDone = false;
    let successes = 0;
    const loops = Array.from({ length: 12 }, async (_, worker) => {
      for (let turn = 0; !isDone; turn++) {
        try {
          await workOnce(driver, worker, turn, acknowledged);
          successes++;
        } catch (error) {
          failures.push(error);
        }
      }
    });
    for (let kill = 0; kill < KILLS; kill++) {
      const before = successes;
      await until('the driver works again', () => successes > before + 50);
      await server.killOthers();
    }
    isDone = true;
    await Promise.all(loops);

    expect(failures.length).toBeGreaterThan(0);
    const codes = new Set(failures.map((error) => (error as { code?: unknown }).code));
    expect([...codes].filter((code) => code !== 'CONNECTION_LOST' && code !== 'CONNECTION_UNAVAILABLE')).toEqual([]);
    const whole = await server.rows('SELECT id FROM pair GROUP BY id');
    const ids = new Set(whole.map((row) => row['id']));
    expect(acknowledged.filter((id) => !ids.has(id))).toEqual([]);
    expect(await server.rows("SELECT id FROM pair WHERE half <> 'both'")).toEqual([]);
    await Promise.all(Array.from({ length: 40 }, () => driver.query('SELECT 1')));
    expect(await server.countOthers()).toBeLessThanOrEqual(MAX_CONNECTIONS);
    await close();
    await until('all sessions are gone', async () => (await server.countOthers()) === 0);
  });
});

/** Alternates between plain statements, prepared ones and transactions of two statements. */
async function workOnce(driver: Driver, worker: number, turn: number, acknowledged: string[]): Promise<void> {
  const id = `${worker}-${turn}`;
  switch (turn % 3) {
    case 0:
      await driver.query('INSERT INTO seen VALUES ($1::text)', [id]);
      return;
    case 1:
      expect(await driver.query('SELECT $1::text AS id', [id], { prepare: 'kills' })).toEqual([{ id }]);
      return;
    default:
      await driver.transaction(async (transaction) => {
        await transaction.query("INSERT INTO pair VALUES ($1::text, 'first')", [id], { prepare: 'kills' });
        await transaction.query("UPDATE pair SET half = 'both' WHERE id = $1::text", [id]);
      });
      acknowledged.push(id);
  }
}
