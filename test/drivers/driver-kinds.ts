import pg from 'pg';
import postgres from 'postgres';

import type { Driver } from '../../src/drivers/driver.js';
import type { DriverOptions } from '../../src/drivers/driver-options.js';
import { createPgDriver } from '../../src/drivers/pg-driver.js';
import { createPostgresDriver } from '../../src/drivers/postgres-driver.js';

/** A way to get a driver. */
export interface DriverKind {
  readonly label: string;
  readonly library: 'pg' | 'postgres';
  /** Whether the driver leaves sessions as the caller's pool made them. */
  readonly usesCallersSessions: boolean;
  open(connectionString: string, options?: DriverOptions): Promise<OpenedDriver>;
}

export interface OpenedDriver {
  readonly driver: Driver;
  /** Closes the driver, and what belongs to the caller. */
  readonly close: () => Promise<void>;
}

export const DRIVER_KINDS: readonly DriverKind[] = [
  {
    label: 'pg',
    library: 'pg',
    usesCallersSessions: false,
    open: async (connectionString, options = {}) => {
      const driver = await createPgDriver({ ...options, connectionString });
      return { driver, close: () => driver.close() };
    },
  },
  {
    label: "pg over the caller's pool",
    library: 'pg',
    usesCallersSessions: true,
    open: async (connectionString, options = {}) => {
      const pool = new pg.Pool({
        connectionString,
        max: options.maxConnections ?? 10,
        connectionTimeoutMillis: options.connectTimeoutMs ?? 10_000,
      });
      const driver = await createPgDriver({ ...options, pool });
      return {
        driver,
        close: async () => {
          pool.on('error', () => undefined);
          await driver.close();
          await pool.end();
        },
      };
    },
  },
  {
    label: 'postgres',
    library: 'postgres',
    usesCallersSessions: false,
    open: async (connectionString, options = {}) => {
      const driver = await createPostgresDriver({ ...options, connectionString });
      return { driver, close: () => driver.close() };
    },
  },
  {
    label: "postgres over the caller's sql",
    library: 'postgres',
    usesCallersSessions: false,
    open: async (connectionString, options = {}) => {
      const sql = postgres(connectionString, { max: options.maxConnections ?? 10 });
      const driver = await createPostgresDriver({ ...options, sql });
      return {
        driver,
        close: async () => {
          await driver.close();
          await sql.end();
        },
      };
    },
  },
];
