import type { ConditionName } from './conditions.js';

/** A test, or a file of tests, that says nothing under a condition, and why. */
export interface LeftOut {
  readonly under: ConditionName | readonly ConditionName[];
  /** From the folder of the repository. */
  readonly file: string;
  /** What the full title begins with or has in it; default: the whole file. */
  readonly title?: string;
  readonly reason: string;
}

/** Every one is printed by `npm run conditions`, which also says which of them no test fits any more. */
export const LEFT_OUT: readonly LeftOut[] = [
  {
    under: 'no-notifications',
    file: 'test/queues/notified.test.ts',
    reason: 'its subject is that notifications wake executors which do not poll',
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

export function fits(entry: LeftOut, condition: ConditionName, file: string, title: string): boolean {
  const { under } = entry;
  const isUnder = typeof under === 'string' ? under === condition : under.includes(condition);
  return isUnder && file === entry.file && (entry.title === undefined || title.includes(entry.title));
}
