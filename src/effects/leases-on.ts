import type { Logger } from '../api/logger.js';
import type { Driver } from '../drivers/driver.js';
import type { Runtime } from '../runtime/runtime.js';
import { PostgresLeaseStore } from '../store/postgres/postgres-lease-store.js';
import { Leases } from './leases.js';

export interface LeasesOnOptions {
  readonly runtime: Runtime;
  readonly driver: Driver;
  /** Validated by the caller. */
  readonly schema: string;
  readonly logger: Logger;
  readonly heldBy: () => string;
}

/** The leases of a process, kept in PostgreSQL. */
export function leasesOn({ runtime, driver, schema, logger, heldBy }: LeasesOnOptions): Leases {
  return new Leases({ runtime, store: new PostgresLeaseStore({ driver, schema }), schema, logger, heldBy });
}
