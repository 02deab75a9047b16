/**
 * What one Holdfast has counted since launch, and how it is now. Counters only grow; they begin at zero in each process.
 * docs/metrics.md has the same as names for Prometheus.
 */
export interface MetricsSnapshot {
  /** Executions under way. */
  readonly running: number;
  /** Whether the lease may have lapsed: no step body begins then before the database has been asked. */
  readonly isFenced: boolean;
  /** Milliseconds since the last acknowledged heartbeat was sent. */
  readonly heartbeatAgeMs: number;
  /** Milliseconds in which the lease may have lapsed, in all. */
  readonly fencedMs: number;
  readonly heartbeatsFailed: number;

  /** Workflows that began here: started directly, or as children. */
  readonly started: number;
  /** Times work was asked for. */
  readonly claims: number;
  /** Workflows that these brought. */
  readonly claimed: number;
  /** Those among them whose owner's lease had expired. */
  readonly recovered: number;
  /** Workflows that were owned here without running, and given back: the reply to a claim or start was lost. */
  readonly strays: number;

  /** Results of durable calls that were recorded. */
  readonly checkpoints: number;
  /** Outcomes that executions recorded here. */
  readonly outcomes: { readonly success: number; readonly error: number };
  /** Executions that ended without one. */
  readonly executions: {
    /** Ownership was lost: taken over, cancelled, deleted. */
    readonly parked: number;
    readonly blocked: number;
    /** At shutdown. */
    readonly givenBack: number;
    /** Unloaded, as everything in it waits. */
    readonly suspended: number;
    /** As new. */
    readonly continued: number;
    /** Version conflicts without end. */
    readonly requeued: number;
  };
  /** Workflows that were ended as stuck after too many requeues. */
  readonly livelocks: number;
  /** Workflows that made no progress for longer than their `stuckAfter`. */
  readonly stuck: number;

  /** Events of the outbox that this process had to deliver. */
  readonly outbox: {
    readonly delivered: number;
    /** Attempts that failed. */
    readonly failures: number;
    /** Events that became dead. */
    readonly dead: number;
  };

  /** Writes that met a change by somebody who did not take ownership: expected under concurrency, and no errors. */
  readonly versionConflicts: number;
  /** Writes that met a locked row. */
  readonly lockedRows: number;
  /** Writes that the database refuses. */
  readonly refusedWrites: number;
  /** Flushes of group commit; `classes` counts them by size, each class up to and with `writes` (the last: any). */
  readonly flushes: {
    readonly count: number;
    readonly writes: number;
    readonly classes: readonly { readonly writes: number; readonly count: number }[];
  };
  /** Flushes that were sent again, since there was no connection or no reply. */
  readonly repeatedFlushes: number;
  /** Times the listening connection was lost: hints were missed, and polling went on. */
  readonly listenerGaps: number;
}
