import type { Logger } from '../api/logger.js';
import type { Driver } from '../drivers/driver.js';
import { PostgresLeaseStore } from '../store/postgres/postgres-lease-store.js';
import { Leases } from './leases.js';

export interface LeasesOnOptions {
  readonly driver: Driver;
  /** Validated by the caller. */
  readonly schema: string;
  readonly logger: Logger;
  readonly heldBy: () => string;
}

/** The leases of a process, kept in PostgreSQL. */
export function leasesOn({ driver, schema, logger, heldBy }: LeasesOnOptions): Leases {
  return new Leases({ store: new PostgresLeaseStore({ driver, schema }), schema, logger, heldBy });
}
