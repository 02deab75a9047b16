import type { Driver } from '../../drivers/driver.js';
import type { LeaseAnswer, LeaseRequest, LeaseStore } from '../lease-store.js';
import { HEARTBEATS_PER_LEASE } from '../store.js';

/**
 * Longest wait for the reply to a renewal, and as a part of the lease: on a connection that carries nothing any more it does not come,
 * and there must be time left to try another one. A lease too short for that gets the shortest wait: to give up sooner would take it
 * from who talks to a slow database. Milliseconds.
 */
const LONGEST_RENEWAL_MS = 5_000;
const SHORTEST_RENEWAL_MS = 1_000;

export interface PostgresLeaseStoreOptions {
  readonly driver: Driver;
  /** Validated by the caller, quoted here. */
  readonly schema: string;
}

/** Named leases on PostgreSQL. One try a call: whoever holds a lease, or waits for one, knows how long it has time. */
export class PostgresLeaseStore implements LeaseStore {
  readonly #driver: Driver;
  readonly #schema: string;

  constructor({ driver, schema }: PostgresLeaseStoreOptions) {
    this.#driver = driver;
    this.#schema = schema;
  }

  async acquire({ name, holder, heldBy, ttlMs }: LeaseRequest): Promise<LeaseAnswer> {
    const [row] = await this.#driver.query<{
      token: number | null;
      held_by: string | null;
      remaining_ms: number | null;
    }>(
      `SELECT token::float8 AS token, held_by, remaining_ms
         FROM "${this.#schema}".acquire_lease($1::text, $2::uuid, $3::text, $4::int8)`,
      [name, holder, heldBy, ttlMs],
    );
    const token = row?.token ?? null;
    if (token !== null) return { kind: 'acquired', token };
    return { kind: 'held', heldBy: row?.held_by ?? '', remainingMs: row?.remaining_ms ?? 0 };
  }

  async renew(name: string, holder: string, ttlMs: number): Promise<boolean> {
    const [row] = await this.#driver.query<{ renewed: boolean }>(
      `SELECT "${this.#schema}".renew_lease($1::text, $2::uuid, $3::int8) AS renewed`,
      [name, holder, ttlMs],
      { isUrgent: true, ...(ttlMs > 0 ? { timeoutMs: renewalTimeoutMs(ttlMs) } : {}) },
    );
    return row?.renewed ?? false;
  }
}

function renewalTimeoutMs(ttlMs: number): number {
  return Math.max(SHORTEST_RENEWAL_MS, Math.min(LONGEST_RENEWAL_MS, ttlMs / HEARTBEATS_PER_LEASE));
}
