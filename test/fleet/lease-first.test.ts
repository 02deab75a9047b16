import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { openDriver } from '../../src/drivers/open-driver.js';
import { PostgresLeaseStore } from '../../src/store/postgres/postgres-lease-store.js';
import { PostgresStore } from '../../src/store/postgres/postgres-store.js';
import { defaultSchema } from '../support/conditions.js';
import { createBed, type Bed } from '../support/launch.js';

const LEASE_MS = 600_000;

describe('an executor with more to do than its connections can', () => {
  let bed: Bed;
  beforeAll(async () => {
    bed = await createBed();
  });
  afterAll(() => bed.close());

  it('keeps its lease, and those by name: what renews them waits for no other statement that waits', async () => {
    await bed.launch({ workflows: [] });
    const driver = await openDriver(bed.database.url, { maxConnections: 1 });
    const schema = defaultSchema();
    const store = new PostgresStore({ driver, schema, notifications: false });
    const leases = new PostgresLeaseStore({ driver, schema });
    const executorId = randomUUID();
    const registration = { executorId, appVersion: '', leaseMs: LEASE_MS, host: '', processId: 1 };
    const incarnation = await store.registerExecutor(registration);
    const holder = randomUUID();
    await leases.acquire({ name: 'leader', holder, heldBy: executorId, ttlMs: LEASE_MS });

    const order: string[] = [];
    const note = (name: string) => () => order.push(name);
    const waiting: Promise<unknown>[] = [];
    await driver.transaction(async (transaction) => {
      await transaction.query('SELECT 1');
      for (let i = 0; i < 3; i++) waiting.push(driver.query('SELECT 1').then(note('other')));
      waiting.push(
        store.heartbeat({ executorId, incarnation }, LEASE_MS).then(note('heartbeat')),
        leases.renew('leader', holder, LEASE_MS).then(note('renewal')),
      );
    });
    await Promise.all(waiting);

    expect(order).toEqual(['heartbeat', 'renewal', 'other', 'other', 'other']);
    await driver.close();
  });
});
