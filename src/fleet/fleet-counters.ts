/** What an executor has counted since launch. */
export interface FleetCounters {
  /** Times work was asked for. */
  claims: number;
  /** Workflows that these brought. */
  claimed: number;
  /** Those among them that another executor, whose lease had expired, left. */
  recovered: number;
  /** Heartbeats without an answer in time. */
  heartbeatsFailed: number;
  /** Time in which the lease may have lapsed, in milliseconds; without the one that lasts. */
  fencedMs: number;
  /** Workflows that were owned here without running, and given back. */
  strays: number;
  /** Workflows that were ended after too many requeues without progress. */
  livelocks: number;
  /** Workflows that were found to make no progress. */
  stuck: number;
}

export function newFleetCounters(): FleetCounters {
  return { claims: 0, claimed: 0, recovered: 0, heartbeatsFailed: 0, fencedMs: 0, strays: 0, livelocks: 0, stuck: 0 };
}
