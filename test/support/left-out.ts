import { CONDITIONS, type ConditionName } from './conditions.js';

/** A test, or a file of tests, that says nothing under a condition, and why. */
export interface LeftOut {
  readonly under: ConditionName | readonly ConditionName[];
  /** From the folder of the repository. */
  readonly file: string;
  /** What the full title begins with or has in it; default: the whole file. */
  readonly title?: string;
  readonly reason: string;
}

/** Files in which nothing is launched: a condition that is an option of launches, or a way to run executions, does not reach them. */
const WITHOUT_LAUNCH: readonly string[] = [
  'test/admin/bulk.test.ts',
  'test/admin/children.test.ts',
  'test/admin/fork.test.ts',
  'test/admin/lists.test.ts',
  'test/admin/races.test.ts',
  'test/admin/repair.test.ts',
  'test/admin/retries.test.ts',
  'test/queues/claims.test.ts',
  'test/store/conformance.test.ts',
  'test/store/equivalence.test.ts',
  'test/store/group-commit-faults.test.ts',
  'test/store/group-commit.test.ts',
  'test/store/migrate.test.ts',
  'test/store/protocol-claim.test.ts',
  'test/store/protocol-failures.test.ts',
  'test/store/protocol-interleavings.test.ts',
  'test/store/protocol-plans.test.ts',
  'test/store/server-checks.test.ts',
];

/** The same, and there is no schema either. */
const WITHOUT_SCHEMA: readonly string[] = [
  'test/drivers/conformance.test.ts',
  'test/drivers/faults.test.ts',
  'test/drivers/kills.test.ts',
  'test/drivers/listening.test.ts',
  'test/simulation/mutants.test.ts',
  'test/simulation/simulation.test.ts',
];

/** Programs with everything of their own: options, and processes that begin without what a condition brings. */
const PROGRAMS: readonly string[] = [
  'test/docs/examples.test.ts',
  'test/drivers/synchronous-standby.test.ts',
  'test/examples/checkout.test.ts',
  'test/examples/payments.test.ts',
  'test/model/model.test.ts',
  'test/processes/failover.test.ts',
  'test/processes/fleet.test.ts',
  'test/processes/own-server.test.ts',
  'test/processes/payments.test.ts',
  'test/processes/sleepers.test.ts',
  'test/store/migrate-processes.test.ts',
  'test/tooling/count-tests.test.ts',
  'test/tooling/embedded-binaries.test.ts',
  'test/tooling/embedded-postgres.test.ts',
];

/** Their executors are processes of their own: they get the options of a condition, and its flags, but replay as all do. */
const EXECUTOR_PROCESSES: readonly string[] = [
  'test/outbox/kills.test.ts',
  'test/processes/kill-points.test.ts',
  'test/processes/lost-replies.test.ts',
  'test/processes/signals.test.ts',
  'test/processes/stress.test.ts',
  'test/processes/transactions.test.ts',
  'test/processes/unknown-outcomes.test.ts',
  'test/processes/zombie.test.ts',
  'test/sagas/processes.test.ts',
  'test/streams/kills.test.ts',
];

const OPTIONS: readonly ConditionName[] = ['short-lease', 'small-pool', 'no-notifications', 'replay-always'];

/** What the reasons of whole files begin with that say that nothing is launched in them. */
export const NOTHING_LAUNCHED = 'nothing is launched in it';

function files(under: readonly ConditionName[], list: readonly string[], reason: string): LeftOut[] {
  return list.map((file) => ({ under, file, reason }));
}

/** Every one is printed by `npm run conditions`, which also says which of them no test fits any more. */
export const LEFT_OUT: readonly LeftOut[] = [
  ...files(OPTIONS, WITHOUT_LAUNCH, NOTHING_LAUNCHED),
  ...files([...OPTIONS, 'other-schema'], WITHOUT_SCHEMA, `${NOTHING_LAUNCHED}, and it has no schema`),
  ...files(
    Object.keys(CONDITIONS) as ConditionName[],
    PROGRAMS,
    'it runs programs with options and processes of their own',
  ),
  ...files(['replay-always'], EXECUTOR_PROCESSES, 'its executors are processes of their own, which replay as all do'),
  {
    under: 'small-pool',
    file: 'test/transactions/attacks.test.ts',
    title: 'of two serialisable transactions of two workflows that skew, one runs again, which COMMIT may say',
    reason: 'its two bodies wait for each other, and transactions may have one connection of two',
  },
  {
    under: 'small-pool',
    file: 'test/transactions/transactions.test.ts',
    title: 'of two transactions in a deadlock both take effect',
    reason: 'its two bodies wait for each other, and transactions may have one connection of two',
  },
  {
    under: 'no-notifications',
    file: 'test/queues/notified.test.ts',
    reason: 'its subject is that notifications wake executors which do not poll',
  },
  {
    under: 'no-notifications',
    file: 'test/messages/faults.test.ts',
    title: 'C44 messages arrive while the listening connection is dead',
    reason: 'its subject is the listening connection',
  },
  {
    under: 'no-notifications',
    file: 'test/messages/faults.test.ts',
    title: 'C44 a process that was deaf looks for everything once it listens again',
    reason: 'its subject is the listening connection',
  },
  {
    under: 'no-notifications',
    file: 'test/messages/signals-queries.test.ts',
    title: 'queries to a workflow that is unloaded sooner than questions are looked for do not time out',
    reason: 'its executor, which looks once an hour, is told of questions',
  },
  {
    under: 'no-notifications',
    file: 'test/fleet/watchdog.test.ts',
    title: 'redundant wake-ups are free: a hundred for one workflow lead to one claim',
    reason: 'its subject is notifications, and its executors poll once an hour',
  },
  {
    under: 'no-notifications',
    file: 'test/schedules/firing.test.ts',
    title: 'with notifications, it need not wait for a poll',
    reason: 'its subject is the notification',
  },
  {
    under: 'no-notifications',
    file: 'test/engine/ownership.test.ts',
    title: 'C15 a workflow in a long sleep, or waiting for a child, ends promptly when cancelled',
    reason: 'promptly is by notification; without, at the next heartbeat',
  },
  {
    under: 'no-notifications',
    file: 'test/engine/ownership.test.ts',
    title: 'a cancelled execution gets its abort signal within a moment, by notification',
    reason: 'its subject is the notification',
  },
  {
    under: 'short-lease',
    file: 'test/queues/limits.test.ts',
    title: 'C32 what a dead executor ran keeps its slot until it is recovered',
    reason: 'its dead executors live, and claim again with their next heartbeat',
  },
  {
    under: 'short-lease',
    file: 'test/queues/limits.test.ts',
    title: 'the concurrency of a queue holds over three executors, each of another app version, and is used',
    reason: 'whether the limit is used up: an executor that a busy machine lets miss so short a lease claims nothing',
  },
  {
    under: 'short-lease',
    file: 'test/processes/lost-replies.test.ts',
    reason: 'a lost reply takes longer than the lease: its subject is an owner that stays the owner',
  },
  {
    under: 'short-lease',
    file: 'test/transactions/faults.test.ts',
    title: 'C9',
    reason: 'a new connection takes longer than the lease: its subject is an owner that stays the owner',
  },
  {
    under: 'short-lease',
    file: 'test/transactions/transactions.test.ts',
    title: 'a body that runs out of time commits nothing, and its connection is not used again',
    reason: 'its body is idle for longer than the lease: the server ends its connection before its time is up',
  },
  {
    under: 'short-lease',
    file: 'test/transactions/libraries.test.ts',
    title: 'takes part in transactions: another database',
    reason: 'it counts the runs of bodies: the server ends connections that are idle for as long as the lease',
  },
  {
    under: 'short-lease',
    file: 'test/launch/metrics.test.ts',
    title: 'what runs, and what was taken away',
    reason: 'a busy machine lets an executor miss so short a lease, and the metrics say so',
  },
  {
    under: 'short-lease',
    file: 'test/messages/updates.test.ts',
    title: 'C9 a request and an acknowledgement whose replies were lost are sent once',
    reason:
      'a lost reply takes longer than the lease, and another executor goes on, by a connection on which nothing is lost',
  },
  {
    under: 'replay-always',
    file: 'test/engine/ownership.test.ts',
    title: 'C8 the same ID started twenty times at once',
    reason: 'its code counts its runs in variables of the test',
  },
  {
    under: 'replay-always',
    file: 'test/engine/continue-as-new.test.ts',
    title: 'arguments that do not fit are refused where they are given',
    reason: 'its code collects in a variable of the test',
  },
  {
    under: 'replay-always',
    file: 'test/engine/continue-as-new.test.ts',
    title: 'C9 a lost reply: the retry finds that the run has been ended',
    reason: 'its code collects in a variable of the test',
  },
  {
    under: 'replay-always',
    file: 'test/engine/slow-codec.test.ts',
    title: 'with a codec that takes its time, results reach the code in the order of the record',
    reason: 'its code collects in a variable of the test',
  },
  {
    under: 'replay-always',
    file: 'test/fleet/executors.test.ts',
    title: 'claims stop at maxConcurrent, and a slot that becomes free is filled without waiting for the next poll',
    reason: 'an execution that begins again leaves its slot for a moment, and comes back whoever has it',
  },
  {
    under: 'replay-always',
    file: 'test/fleet/conflicts.test.ts',
    title: 'writers that move the version between checkpoints are followed: no error, no loss, no body run twice',
    reason: 'its code writes to the row by itself whenever it comes by, and the writes are counted',
  },
  {
    under: 'replay-always',
    file: 'test/outbox/outbox.test.ts',
    title: 'is refused once the attempt is over, and when the payload cannot be stored',
    reason:
      'what its step left behind belongs to an execution that was dropped: like all calls of an unloaded one, it never ends',
  },
  {
    under: 'replay-always',
    file: 'test/messages/messages.test.ts',
    title: 'C45 a thousand messages at once',
    reason: 'a thousand replays of up to a thousand calls take minutes',
  },
  {
    under: 'replay-always',
    file: 'test/queues/map.test.ts',
    title: 'mapWorkflows runs a child for each input, at most so many at once',
    reason: 'its children count their runs in variables of the test',
  },
  {
    under: 'replay-always',
    file: 'test/queues/map.test.ts',
    title: 'the children of a map keep to the limits of their queue, too',
    reason: 'its children count their runs in variables of the test',
  },
  {
    under: 'replay-always',
    file: 'test/effects/unknown-outcomes.test.ts',
    title: 'atMostOnce: what did not happen is not run a second time, and fails with a typed error',
    reason: 'its code empties a variable of the test',
  },
  {
    under: 'replay-always',
    file: 'test/suspension/suspension.test.ts',
    title: 'is left to others at shutdown when it would wait longer than that takes',
    reason: 'a shutdown that meets it between two of its runs gives it back',
  },
  {
    under: 'replay-always',
    file: 'test/transactions/attacks.test.ts',
    title: 'a plain step beside transactions that never stop has its turn',
    reason: 'its code ends by a variable of the test, which a replay finds set',
  },
  {
    under: 'short-lease',
    file: 'test/fleet/executors.test.ts',
    title: 'a row that somebody keeps locked delays its giving back, not the heartbeats',
    reason: 'its subject is a lease that outlives a wait for a lock',
  },
  {
    under: 'short-lease',
    file: 'test/fleet/executors.test.ts',
    title: 'C4 of what a dead executor left',
    reason: 'its dead executors live, and claim again with their next heartbeat',
  },
];

export function leftOutReason(
  list: readonly LeftOut[],
  condition: ConditionName,
  file: string,
  title: string,
): string | undefined {
  return list.find((entry) => fits(entry, condition, file, title))?.reason;
}

/** Files of which nothing runs under the condition: not even what prepares their tests. */
export function filesLeftOut(condition: ConditionName): readonly string[] {
  return LEFT_OUT.filter((entry) => entry.title === undefined && isUnder(entry, condition)).map(({ file }) => file);
}

export function isUnder({ under }: LeftOut, condition: ConditionName): boolean {
  return typeof under === 'string' ? under === condition : under.includes(condition);
}

export function fits(entry: LeftOut, condition: ConditionName, file: string, title: string): boolean {
  return isUnder(entry, condition) && file === entry.file && (entry.title === undefined || title.includes(entry.title));
}
