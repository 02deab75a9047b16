import type { MetricsSnapshot } from './api/metrics.js';
import type { RelayCounters } from './effects/relay.js';
import type { EngineCounters } from './engine/engine-counters.js';
import type { Executor } from './fleet/executor.js';
import { FLUSH_SIZES, type StoreCounters } from './store/store-counters.js';

/** What the parts of a Holdfast have counted, in one. */
export function metricsSnapshot(
  engine: EngineCounters,
  executor: Pick<Executor, 'counters' | 'health' | 'fencedMs'>,
  relay: Readonly<RelayCounters>,
  store: Readonly<StoreCounters>,
): MetricsSnapshot {
  const { state, running, heartbeatAgeMs } = executor.health;
  const { claims, claimed, recovered, heartbeatsFailed, strays, livelocks, stuck } = executor.counters;
  const { versionConflicts, lockedRows, refusedWrites, repeatedFlushes, listenerGaps } = store;
  const { parked, blocked, suspended, continued, requeued } = engine.ends;
  return {
    running,
    isFenced: state === 'fenced',
    heartbeatAgeMs,
    fencedMs: executor.fencedMs,
    heartbeatsFailed,
    started: engine.started,
    claims,
    claimed,
    recovered,
    strays,
    checkpoints: engine.checkpoints,
    outcomes: { ...engine.outcomes },
    executions: { parked, blocked, givenBack: engine.ends['given-back'], suspended, continued, requeued },
    livelocks,
    stuck,
    outbox: { ...relay },
    versionConflicts,
    lockedRows,
    refusedWrites,
    flushes: {
      count: store.flushes.reduce((sum, count) => sum + count, 0),
      writes: store.flushedWrites,
      classes: store.flushes.map((count, index) => ({ writes: FLUSH_SIZES[index] ?? Infinity, count })),
    },
    repeatedFlushes,
    listenerGaps,
  };
}
