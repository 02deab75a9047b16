import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { canRunPgBouncer, type PgBouncer, startPgBouncer } from '../support/pgbouncer.js';
import { describeConformance } from './conformance.js';
import { DRIVER_KINDS } from './driver-kinds.js';

describe.runIf(canRunPgBouncer())('through PgBouncer in transaction mode', () => {
  let database: TestDatabase;
  let bouncer: PgBouncer;
  beforeAll(async () => {
    database = await createTestDatabase();
    bouncer = await startPgBouncer(database.url);
  });
  afterAll(async () => {
    await bouncer.stop();
    await database.drop();
  });

  for (const kind of DRIVER_KINDS) {
    describeConformance({
      label: `${kind.label} through PgBouncer`,
      library: kind.library,
      open: (options) => kind.open(bouncer.connectionString(database.url), options),
    });

    it(`${kind.label} leaves no prepared statements behind on server connections`, async () => {
      const { driver, close } = await kind.open(bouncer.connectionString(database.url));
      const run = () => driver.query(`SELECT $1::int4 AS "leak of ${kind.label}"`, [1], { prepare: 'leak' });
      await Promise.all(Array.from({ length: 200 }, run));
      await Promise.all(Array.from({ length: 200 }, run));
      // Each look may be at another server connection. `pg` prepares until the first mismatch, always under one name.
      for (let look = 0; look < 20; look++) {
        const rows = await driver.query(
          'SELECT count(*)::int4 AS n FROM pg_prepared_statements WHERE statement LIKE $1::text',
          [`%"leak of ${kind.label}"%`],
        );
        expect(rows[0]?.['n']).toBeLessThanOrEqual(1);
      }
      await close();
    });
  }
});
