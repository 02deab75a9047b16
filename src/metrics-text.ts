import type { FleetOverview } from './admin/admin-answers.js';
import type { MetricsSnapshot } from './api/metrics.js';

/** One line below a metric's name: a suffix of the name, labels, and the value. */
interface Sample {
  readonly suffix?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly value: number;
}

interface Metric<Source> {
  readonly name: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly help: string;
  readonly samples: (source: Source) => readonly Sample[];
}

function one<Source>(
  name: string,
  type: 'counter' | 'gauge',
  help: string,
  value: (source: Source) => number,
): Metric<Source> {
  return { name, type, help, samples: (source) => [{ value: value(source) }] };
}

const labelled = (label: string, values: Readonly<Record<string, number>>): readonly Sample[] =>
  Object.entries(values).map(([key, value]) => ({ labels: { [label]: key }, value }));

/** What one process knows of itself. */
export const PROCESS_METRICS: readonly Metric<MetricsSnapshot>[] = [
  one('holdfast_executions_running', 'gauge', 'Executions under way.', ({ running }) => running),
  one('holdfast_fenced', 'gauge', '1 while the lease may have lapsed.', ({ isFenced }) => Number(isFenced)),
  one(
    'holdfast_fenced_seconds_total',
    'counter',
    'Time in which the lease may have lapsed.',
    ({ fencedMs }) => fencedMs / 1_000,
  ),
  one(
    'holdfast_heartbeat_age_seconds',
    'gauge',
    'Time since the last acknowledged heartbeat was sent.',
    ({ heartbeatAgeMs }) => heartbeatAgeMs / 1_000,
  ),
  one(
    'holdfast_heartbeats_failed_total',
    'counter',
    'Heartbeats without an answer in time.',
    ({ heartbeatsFailed }) => heartbeatsFailed,
  ),
  one(
    'holdfast_workflows_started_total',
    'counter',
    'Workflows that began here, started directly or as children.',
    ({ started }) => started,
  ),
  one('holdfast_claims_total', 'counter', 'Times work was asked for.', ({ claims }) => claims),
  one('holdfast_workflows_claimed_total', 'counter', 'Workflows that claims brought.', ({ claimed }) => claimed),
  one(
    'holdfast_workflows_recovered_total',
    'counter',
    'Claimed workflows whose owner had lost its lease.',
    ({ recovered }) => recovered,
  ),
  one(
    'holdfast_workflows_stray_total',
    'counter',
    'Workflows that were owned here without running, and given back.',
    ({ strays }) => strays,
  ),
  one(
    'holdfast_checkpoints_total',
    'counter',
    'Results of durable calls that were recorded.',
    ({ checkpoints }) => checkpoints,
  ),
  {
    name: 'holdfast_outcomes_total',
    type: 'counter',
    help: 'Outcomes that executions recorded here.',
    samples: ({ outcomes }) => labelled('status', { SUCCESS: outcomes.success, ERROR: outcomes.error }),
  },
  {
    name: 'holdfast_executions_ended_total',
    type: 'counter',
    help: 'Executions that ended without an outcome of their own.',
    samples: ({ executions }) => labelled('how', executions),
  },
  one(
    'holdfast_livelocks_total',
    'counter',
    'Workflows that were ended as stuck after too many requeues.',
    ({ livelocks }) => livelocks,
  ),
  one(
    'holdfast_workflows_stuck_total',
    'counter',
    'Workflows that made no progress for longer than their stuckAfter.',
    ({ stuck }) => stuck,
  ),
  one('holdfast_outbox_delivered_total', 'counter', 'Events that were delivered.', ({ outbox }) => outbox.delivered),
  one(
    'holdfast_outbox_failures_total',
    'counter',
    'Attempts to deliver an event that failed.',
    ({ outbox }) => outbox.failures,
  ),
  one('holdfast_outbox_dead_total', 'counter', 'Events that became dead.', ({ outbox }) => outbox.dead),
  one(
    'holdfast_version_conflicts_total',
    'counter',
    'Writes that met a change by somebody who did not take ownership; no errors.',
    ({ versionConflicts }) => versionConflicts,
  ),
  one('holdfast_rows_locked_total', 'counter', 'Writes that met a locked row.', ({ lockedRows }) => lockedRows),
  one(
    'holdfast_writes_refused_total',
    'counter',
    'Writes that the database refuses.',
    ({ refusedWrites }) => refusedWrites,
  ),
  {
    name: 'holdfast_flush_writes',
    type: 'histogram',
    help: 'Writes that one flush of group commit carried.',
    samples: ({ flushes }) => {
      let sum = 0;
      const buckets = flushes.classes.map(({ writes, count }): Sample => {
        sum += count;
        return { suffix: '_bucket', labels: { le: writes === Infinity ? '+Inf' : String(writes) }, value: sum };
      });
      return [...buckets, { suffix: '_sum', value: flushes.writes }, { suffix: '_count', value: flushes.count }];
    },
  },
  one(
    'holdfast_flushes_repeated_total',
    'counter',
    'Flushes that were sent again, since there was no connection or no reply.',
    ({ repeatedFlushes }) => repeatedFlushes,
  ),
  one(
    'holdfast_listener_gaps_total',
    'counter',
    'Times the listening connection was lost.',
    ({ listenerGaps }) => listenerGaps,
  ),
];

/** What the database knows of all of them. */
export const FLEET_METRICS: readonly Metric<FleetOverview>[] = [
  {
    name: 'holdfast_fleet_executors',
    type: 'gauge',
    help: 'Executors whose leases last.',
    samples: ({ executors }) =>
      executors.map(({ appVersion, count }) => ({ labels: { app_version: appVersion }, value: count })),
  },
  {
    name: 'holdfast_fleet_workflows_waiting',
    type: 'gauge',
    help: 'Workflows that could be claimed; the empty queue stands for none.',
    samples: ({ waiting, queues }) => [
      { labels: { queue: '' }, value: waiting },
      ...queues.map((queue) => ({ labels: { queue: queue.name }, value: queue.waiting })),
    ],
  },
  {
    name: 'holdfast_fleet_queue_running',
    type: 'gauge',
    help: 'Workflows that hold a slot of a queue.',
    samples: ({ queues }) => queues.map(({ name, running }) => ({ labels: { queue: name }, value: running })),
  },
  one('holdfast_fleet_workflows_delayed', 'gauge', 'Workflows that wait for a time.', ({ delayed }) => delayed),
  one('holdfast_fleet_workflows_attention', 'gauge', 'Workflows that wait for a person.', ({ attention }) => attention),
  one('holdfast_fleet_outbox_pending', 'gauge', 'Events to be delivered.', ({ outbox }) => outbox.pending),
  one('holdfast_fleet_outbox_dead', 'gauge', 'Events that wait for a person.', ({ outbox }) => outbox.dead),
  one(
    'holdfast_fleet_outbox_lag_seconds',
    'gauge',
    'Age of the oldest event to be delivered.',
    ({ outbox }) => outbox.lagSeconds,
  ),
  {
    name: 'holdfast_fleet_workflows_unserved',
    type: 'gauge',
    help: 'Workflows that wait for an app version which no live executor has.',
    samples: ({ unservedVersions }) =>
      unservedVersions.map(({ appVersion, workflows }) => ({ labels: { app_version: appVersion }, value: workflows })),
  },
];

/** The text form of Prometheus, version 0.0.4; `executor` becomes a label of what the process knows of itself. */
export function metricsText(snapshot: MetricsSnapshot, executor: string, fleet: FleetOverview | undefined): string {
  const own = PROCESS_METRICS.map((metric) => linesOf(metric, snapshot, { executor }));
  const common = fleet === undefined ? [] : FLEET_METRICS.map((metric) => linesOf(metric, fleet, {}));
  return [...own, ...common].flat().join('\n') + '\n';
}

function linesOf<Source>(
  { name, type, help, samples }: Metric<Source>,
  source: Source,
  common: Readonly<Record<string, string>>,
): readonly string[] {
  const lines = samples(source).map(({ suffix = '', labels, value }) => {
    const pairs = Object.entries({ ...common, ...labels }).map(([key, text]) => `${key}="${escape(text)}"`);
    return `${name}${suffix}${pairs.length === 0 ? '' : `{${pairs.join(',')}}`} ${numberText(value)}`;
  });
  return [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`, ...lines];
}

function escape(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
}

/** Before the first heartbeat its age is not a number that JSON knows. */
function numberText(value: number): string {
  return value === Infinity ? '+Inf' : String(value);
}
