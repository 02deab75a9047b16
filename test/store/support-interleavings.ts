import { randomUUID } from 'node:crypto';

import {
  type Ask,
  bump,
  cancel,
  checkpointBatch,
  checkpointOne,
  claim,
  complete,
  type ProtocolBench,
  recordIntent,
  releaseWorkflow,
  remove,
  start,
  WORKFLOW_TABLES,
  type Row,
  type Session,
} from './support-protocol.js';

/** One workflow in its initial state, and the names of everything random in it. */
export interface Scene {
  readonly id: string;
  readonly childId: string;
  /** The owner's. */
  readonly token: string;
  /** What the owner saw last. */
  readonly version: number;
  /** An earlier execution's. */
  readonly staleToken: string;
  /** The name of each UUID, so that two scenes can be compared. */
  readonly labels: Map<string, string>;
  nonce(label: string): string;
}

/** Whether the call has to be made again, since somebody held the row. */
export type Tried = 'through' | 'held up';

export interface Operation {
  readonly label: string;
  run(ask: Ask, scene: Scene): Promise<Tried>;
}

const heldUpWhen = (isHeldUp: boolean): Tried => (isHeldUp ? 'held up' : 'through');

/** What start_batch and record_intent do in place of waiting for ever for another transaction. */
async function boundedWait(work: () => Promise<Tried>): Promise<Tried> {
  try {
    return await work();
  } catch (error) {
    if ((error as { code?: string }).code === '55P03') return 'held up';
    throw error;
  }
}

/** Every function that writes a workflow, by its owner and by those who are not, and the writers beside the protocol. */
export const OPERATIONS: readonly Operation[] = [
  {
    label: 'checkpoint_one',
    run: async (ask, s) => {
      const { answer } = await checkpointOne(ask, s, { seq: 5, output: '"five"', nonce: s.nonce('five') });
      return heldUpWhen(answer === 'locked');
    },
  },
  {
    label: 'checkpoint_one of another step',
    run: async (ask, s) => {
      const { answer } = await checkpointOne(ask, s, { seq: 6, output: '"six"', nonce: s.nonce('six') });
      return heldUpWhen(answer === 'locked');
    },
  },
  {
    label: 'checkpoint_batch of two steps',
    run: async (ask, s) => {
      const steps = [
        { seq: 7, nonce: s.nonce('seven') },
        { seq: 8, nonce: s.nonce('eight') },
      ];
      const [first] = await checkpointBatch(ask, s, steps);
      return heldUpWhen(first?.answer === 'locked');
    },
  },
  {
    label: 'checkpoint_one with an old token',
    run: async (ask, s) => {
      await checkpointOne(ask, { ...s, token: s.staleToken }, { seq: 9, nonce: s.nonce('stale token') });
      return 'through';
    },
  },
  {
    label: 'checkpoint_batch with an old token',
    run: async (ask, s) => {
      await checkpointBatch(ask, { ...s, token: s.staleToken }, [{ seq: 10, nonce: s.nonce('stale token, batch') }]);
      return 'through';
    },
  },
  {
    label: 'checkpoint_one with an old version',
    run: async (ask, s) => {
      await checkpointOne(ask, { ...s, version: s.version - 1 }, { seq: 11, nonce: s.nonce('stale version') });
      return 'through';
    },
  },
  {
    label: 'complete_batch with an old token',
    run: async (ask, s) => {
      await complete(ask, { ...s, token: s.staleToken, nonce: s.nonce('stale outcome') });
      return 'through';
    },
  },
  {
    label: 'complete_batch',
    run: async (ask, s) => heldUpWhen((await complete(ask, { ...s, nonce: s.nonce('outcome') })).answer === 'locked'),
  },
  {
    label: 'record_intent of a sleep',
    run: async (ask, s) => {
      const { answer } = await recordIntent(ask, { ...s, nonce: s.nonce('sleep') }, { seq: 12, sleepMs: 60_000 });
      return heldUpWhen(answer === 'locked');
    },
  },
  {
    label: 'record_intent of a child',
    run: (ask, s) =>
      boundedWait(async () => {
        const child = { id: s.childId, token: s.nonce('child token') };
        const { answer } = await recordIntent(ask, { ...s, nonce: s.nonce('child') }, { seq: 13, child });
        return heldUpWhen(answer === 'locked');
      }),
  },
  {
    label: 'release_workflow',
    run: async (ask, s) =>
      heldUpWhen((await releaseWorkflow(ask, { ...s, nonce: s.nonce('release') }, 'DELAYED')).answer === 'locked'),
  },
  {
    label: 'claim_workflows',
    run: async (ask, s) => heldUpWhen((await claim(ask, { only: [s.id] })).length === 0),
  },
  {
    label: 'start_batch of the same ID',
    run: (ask, s) =>
      boundedWait(async () => {
        await start(ask, { id: s.id, token: s.nonce('start token'), nonce: s.nonce('start') });
        return 'through';
      }),
  },
  {
    label: 'fail_stuck_workflow',
    run: async (ask, s) => {
      await ask(`SELECT @fail_stuck_workflow($1, $2::uuid, $3::uuid, '"stuck"')`, [s.id, s.token, s.nonce('stuck')]);
      return 'through';
    },
  },
  {
    label: 'a write without ownership',
    run: async (ask, s) => {
      await bump(ask, s.id);
      return 'through';
    },
  },
  {
    label: 'a cancellation',
    run: async (ask, s) => {
      await cancel(ask, s.id, s.nonce('cancel'));
      return 'through';
    },
  },
  {
    label: 'a deletion',
    run: async (ask, s) => {
      await remove(ask, s.id, s.nonce('delete'));
      return 'through';
    },
  },
];

/** A workflow in its second epoch, with two steps, whose owner lives on although its lease is over. */
export async function setScene(ask: Ask): Promise<Scene> {
  const id = `w-${randomUUID()}`;
  const staleToken = randomUUID();
  const labels = new Map<string, string>([
    [id, 'the workflow'],
    [staleToken, 'stale'],
  ]);
  const scene = {
    id,
    childId: `${id}.child`,
    staleToken,
    labels,
    nonce: (label: string) => {
      for (const [uuid, known] of labels) if (known === label) return uuid;
      const uuid = randomUUID();
      labels.set(uuid, label);
      return uuid;
    },
  };
  await start(ask, { id, token: staleToken, nonce: scene.nonce('first start'), executor: 'owner' });
  const first = { id, token: staleToken };
  await checkpointOne(ask, { ...first, version: 1 }, { seq: 0, nonce: scene.nonce('zero') });
  await releaseWorkflow(ask, { ...first, version: 2, nonce: scene.nonce('first release') }, 'ENQUEUED');
  const token = scene.nonce('owner');
  // The claim of an executor whose lease is over by now: written by hand, since a claim makes a token of its own.
  await ask(
    `UPDATE @workflow_status SET status = 'PENDING', owner_token = $2::uuid, epoch = 2, record_version = 4, attempts = 2,
            executor_id = 'owner', incarnation = 1, wake_at = NULL, owned_at = @clock(), owned_reason = 'claimed'
      WHERE workflow_id = $1`,
    [id, token],
  );
  await checkpointOne(ask, { id, token, version: 4 }, { seq: 1, nonce: scene.nonce('one') });
  return { ...scene, token, version: 5 };
}

/** What the tables hold of a scene, with random values by name and times reduced to whether they are there. */
export async function observe(ask: Ask, scene: Scene): Promise<string> {
  const tables: Record<string, Row[]> = {};
  for (const [table, order] of Object.entries(WORKFLOW_TABLES)) {
    // Audit rows have random IDs.
    const by = table === 'admin_audit' ? 'workflow_id, verb' : order;
    tables[table] = await ask(`SELECT t.* FROM @${table} t WHERE workflow_id IN ($1, $2) ORDER BY ${by}`, [
      scene.id,
      scene.childId,
    ]);
  }
  let text = JSON.stringify(tables, undefined, 1);
  for (const [value, label] of scene.labels) text = text.replaceAll(value, label);
  return text
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'a time')
    .replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, 'some UUID');
}

/** What may come of two operations, by their labels. */
export type Expectations = Map<
  string,
  { readonly inOrder: string; readonly reversed: string; readonly second: string }
>;

export type Pair = readonly [Operation, Operation];

export const ALL_PAIRS: readonly Pair[] = OPERATIONS.flatMap((first) =>
  OPERATIONS.map((second) => [first, second] as const),
);

const keyOf = ([first, second]: Pair): string => `${first.label}, then ${second.label}`;

/** Runs all pairs one after the other, which is what their concurrent runs have to look like. */
export async function serialResults(bench: ProtocolBench, pairs: readonly Pair[]): Promise<Expectations> {
  const expectations: Expectations = new Map();
  const after = async (...operations: Operation[]): Promise<string> => {
    const scene = await setScene(bench.ask);
    for (const operation of operations) await operation.run(bench.ask, scene);
    return observe(bench.ask, scene);
  };
  for (const pair of pairs) {
    const [first, second] = pair;
    expectations.set(keyOf(pair), {
      inOrder: await after(first, second),
      reversed: await after(second, first),
      second: await after(second),
    });
  }
  return expectations;
}

/**
 * Runs each pair at once on two sessions: the second operation while the first one's transaction is open, which is then
 * committed or rolled back. Returns what was not one of the serial results.
 */
export async function findAnomalies(
  bench: ProtocolBench,
  pairs: readonly Pair[],
  expectations: Expectations,
): Promise<string[]> {
  const anomalies: string[] = [];
  const [one, two] = [await bench.session(), await bench.session()];
  for (const pair of pairs) {
    for (const end of ['COMMIT', 'ROLLBACK'] as const) {
      const found = await runPair(bench, one, two, pair, end, expectations);
      if (found !== undefined) anomalies.push(`${keyOf(pair)}, ${end}: ${found}`);
    }
  }
  await Promise.all([one.end(), two.end()]);
  return anomalies;
}

async function runPair(
  bench: ProtocolBench,
  one: Session,
  two: Session,
  pair: Pair,
  end: 'COMMIT' | 'ROLLBACK',
  expectations: Expectations,
): Promise<string | undefined> {
  const [first, second] = pair;
  const expected = expectations.get(keyOf(pair));
  if (expected === undefined) throw new Error(`No expectation for ${keyOf(pair)}.`);
  const scene = await setScene(bench.ask);
  try {
    await one.ask('BEGIN');
    await first.run(one.ask, scene);
    const running = second.run(two.ask, scene);
    await bench.untilSettledOrBlocked(two.pid, running);
    await one.ask(end);
    // Held up, it has written nothing; its caller tries again.
    if ((await running) === 'held up') await second.run(bench.ask, scene);
  } catch (error) {
    await one.ask('ROLLBACK');
    return `failed with ${String((error as { code?: unknown }).code ?? error)}`;
  }
  const found = await observe(bench.ask, scene);
  const allowed = end === 'ROLLBACK' ? [expected.second] : [expected.inOrder, expected.reversed];
  return allowed.includes(found) ? undefined : `${found}\n  instead of one of\n${allowed.join('\n')}`;
}
