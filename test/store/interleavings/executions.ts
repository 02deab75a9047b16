import {
  bounded,
  call,
  callProcedure,
  EVERYWHERE,
  type Operation,
  orAgain,
  OWNED,
  plain,
  ROLLING,
  write,
} from './operation.js';
import type { Scene, SceneKind } from './scenes.js';

const OWNERS: readonly SceneKind[] = [...OWNED, ...ROLLING];

/** The arguments that every write of an owner begins with. */
const owner = (s: Scene, nonce: string): unknown[] => [s.id, s.token, s.version, s.uuid(nonce)];

const step = (s: Scene, who: { token?: string; version?: number }, seq: number, kind = 'step'): unknown[] => [
  s.id,
  who.token ?? s.token,
  who.version ?? s.version,
  s.uuid(`step ${String(seq)}`),
  seq,
  kind === 'step' ? 'work' : 'undo',
  kind,
  `"${String(seq)}"`,
  null,
  1,
  null,
  null,
  0,
];

const steps = (s: Scene, token: string, first: number): unknown[] => [
  [s.id, s.id],
  [token, token],
  [s.version, s.version + 1],
  [2, 0],
  [s.uuid(`step ${String(first)}`), s.uuid(`step ${String(first + 1)}`)],
  [first, first + 1],
  ['work', 'work'],
  ['step', 'step'],
  ['"a"', '"b"'],
  [null, null],
  [1, 1],
  [null, null],
  [null, null],
  [0, 0],
];

const oneStep = (s: Scene, token: string, seq: number): unknown[] =>
  steps(s, token, seq)
    .map((column) => (column as unknown[]).slice(0, 1))
    .map((column, index) => (index === 3 ? [1] : column));

const outcome = (s: Scene, token: string, nonce: string): unknown[] => [
  [s.id],
  [token],
  [s.version],
  [s.uuid(nonce)],
  [s.kind === 'rolling back' ? 'ERROR' : 'SUCCESS'],
  [s.kind === 'rolling back' ? null : '"result"'],
  [s.kind === 'rolling back' ? '"failed"' : null],
  [null],
];

const entry = (s: Scene, seq: number, kind: string | null): unknown[] => [
  [s.id],
  [s.token],
  [s.version],
  [1],
  [s.uuid(`entry ${String(seq)}`)],
  [seq],
  [kind],
  ['s'],
  [kind === 'stream-close' ? null : '"more"'],
  [kind === null ? null : '"written"'],
  [1],
  [null],
  [0],
];

const NONE = (length: number): null[] => Array.from({ length }, () => null);

const release = (s: Scene, status: string, attention: string | null): unknown[] => [
  ...owner(s, `release ${status}`),
  status,
  status === 'DELAYED' ? 3_600_000 : null,
  false,
  attention,
  null,
];

/** What executions write. */
export const EXECUTIONS: readonly Operation[] = [
  // Results
  { label: 'a checkpoint', scenes: OWNERS, run: (ask, s) => write(ask, 'checkpoint_one', step(s, {}, 20)) },
  {
    label: 'a checkpoint of another step',
    scenes: OWNERS,
    run: (ask, s) => write(ask, 'checkpoint_one', step(s, {}, 21)),
  },
  {
    label: 'a checkpoint of the step that has begun',
    scenes: OWNED,
    run: (ask, s) => write(ask, 'checkpoint_one', step(s, {}, 6)),
  },
  {
    label: 'a checkpoint of two steps',
    scenes: OWNED,
    run: (ask, s) => write(ask, 'checkpoint_batch', steps(s, s.token, 22)),
  },
  {
    label: 'a checkpoint of one step in a batch',
    scenes: OWNED,
    run: (ask, s) => write(ask, 'checkpoint_batch', oneStep(s, s.token, 62)),
  },
  {
    label: 'a checkpoint with events',
    scenes: OWNED,
    run: (ask, s) => {
      const events = JSON.stringify([{ topic: `${s.id} topic`, key: `${s.id} lane`, payload: '2' }]);
      return write(ask, 'record_with_events', [
        ...owner(s, 'outbox two'),
        24,
        'add',
        'outbox',
        '"added"',
        1,
        null,
        0,
        events,
      ]);
    },
  },
  {
    label: 'a checkpoint in a transaction',
    scenes: OWNED,
    run: async (ask, s) => {
      await ask(`SELECT set_config('holdfast.transaction', 'marker', false)`);
      return bounded(async () => {
        const args = ['marker', ...owner(s, 'transaction'), 25, 'pay', '"paid"', 1, null, 0];
        const [row] = await call<{ checkpoint_transaction: string }>(ask, 'checkpoint_transaction', args);
        return row?.checkpoint_transaction === '{"answer":"recorded"}' ? 'through' : 'refused';
      });
    },
  },
  {
    label: 'a checkpoint that is sent with COMMIT',
    scenes: OWNED,
    run: async (ask, s) => {
      await ask(`SELECT set_config('holdfast.transaction', 'marker', false)`);
      return bounded(async () => {
        const args = ['marker', ...owner(s, 'concluded'), 30, 'pay', '"paid"', 1, null, 0];
        await callProcedure(ask, 'conclude_transaction', args);
        return 'through';
      });
    },
  },
  {
    label: 'a decision what became of a transaction',
    scenes: OWNED,
    run: (ask, s) => {
      const [id, token, version, nonce] = owner(s, 'settled');
      return plain(ask, 'settle_transaction', [id, token, version, 31, nonce]);
    },
  },
  {
    label: 'a checkpoint with an old token',
    scenes: OWNERS,
    isStale: true,
    run: (ask, s) => write(ask, 'checkpoint_one', step(s, { token: s.uuid('stale') }, 26)),
  },
  {
    label: 'a checkpoint of two steps with an old token',
    scenes: OWNED,
    isStale: true,
    run: (ask, s) => write(ask, 'checkpoint_batch', steps(s, s.uuid('stale'), 27)),
  },
  {
    label: 'a checkpoint of one step in a batch with an old token',
    scenes: OWNED,
    isStale: true,
    run: (ask, s) => write(ask, 'checkpoint_batch', oneStep(s, s.uuid('stale'), 64)),
  },
  {
    label: 'a checkpoint with an old version',
    scenes: OWNERS,
    isStale: true,
    run: (ask, s) => write(ask, 'checkpoint_one', step(s, { version: s.version - 1 }, 29)),
  },
  {
    label: 'the outcome',
    scenes: OWNERS,
    run: (ask, s) => write(ask, 'complete_batch', outcome(s, s.token, 'outcome')),
  },
  {
    label: 'an outcome with an old token',
    scenes: OWNERS,
    isStale: true,
    run: (ask, s) => write(ask, 'complete_batch', outcome(s, s.uuid('stale'), 'stale outcome')),
  },
  // Intents
  {
    label: 'the intent of a sleep',
    scenes: OWNED,
    run: (ask, s) => write(ask, 'record_intent', [...owner(s, 'sleep'), 30, 'sleep', 'sleep', 60_000, ...NONE(10)]),
  },
  {
    label: 'the start of a child',
    scenes: OWNED,
    run: (ask, s) => {
      const child = [
        `${s.id} second child`,
        'flow',
        null,
        s.uuid('second token'),
        '"input"',
        'cancel',
        100,
        null,
        null,
      ];
      return write(ask, 'record_intent', [...owner(s, 'second child'), 31, 'child', 'workflow', null, null, ...child]);
    },
  },
  {
    label: 'the enqueuing of a child',
    scenes: OWNED,
    run: (ask, s) =>
      write(ask, 'record_enqueue', [
        ...owner(s, 'third child'),
        ...[32, 'child', 'enqueue', `${s.id} third child`, 'flow', null, '"input"', 'cancel', 100, null, null],
        ...[`${s.id} queue`, 0, '', null, 'dedup', null, 'reject', null, null, null],
      ]),
  },
  {
    label: 'the mark that a step is unknown',
    scenes: OWNED,
    run: (ask, s) => write(ask, 'mark_unknown', [...owner(s, 'unknown'), 6, 'charge', 2]),
  },
  // Messages, events, streams
  {
    label: 'the receiving of a message',
    scenes: OWNED,
    run: (ask, s) => write(ask, 'consume_message', [...owner(s, 'receive'), 33, 'topic', null, 0]),
  },
  {
    label: 'the receiving of nothing in time',
    scenes: OWNED,
    run: (ask, s) => write(ask, 'consume_message', [...owner(s, 'receive late'), 34, 'other', '"nothing"', 0]),
  },
  {
    label: 'the sending of a message',
    scenes: OWNED,
    run: (ask, s) =>
      write(ask, 'record_send', [
        ...owner(s, 'send'),
        35,
        'send',
        `${s.id} receiver`,
        'topic',
        '"hi"',
        null,
        '"sent"',
        0,
      ]),
  },
  {
    label: 'the sending of a message to itself',
    scenes: OWNED,
    run: (ask, s) =>
      write(ask, 'record_send', [...owner(s, 'to itself'), 36, 'send', s.id, 'topic', '"hi"', null, '"sent"', 0]),
  },
  {
    label: 'the setting of an event',
    scenes: OWNED,
    run: (ask, s) => write(ask, 'record_event', [...owner(s, 'set'), 37, 'key', '"new"', '"set"', 0]),
  },
  {
    label: 'an entry of a stream',
    scenes: OWNED,
    run: (ask, s) => write(ask, 'stream_batch', entry(s, 38, 'stream')),
  },
  {
    label: 'an entry of a stream by a step',
    scenes: OWNED,
    run: (ask, s) => write(ask, 'stream_batch', entry(s, 6, null)),
  },
  {
    label: 'the closing of a stream',
    scenes: OWNED,
    run: (ask, s) => write(ask, 'stream_batch', entry(s, 39, 'stream-close')),
  },
  // Ends of executions
  {
    label: 'a release until later',
    scenes: OWNERS,
    run: (ask, s) => write(ask, 'release_workflow', release(s, 'DELAYED', null)),
  },
  {
    label: 'a release to a person',
    scenes: OWNED,
    run: (ask, s) => write(ask, 'release_workflow', release(s, 'BLOCKED', 'NONDETERMINISM')),
  },
  {
    label: 'the suspension',
    scenes: OWNED,
    run: async (ask, s) => {
      const waits = [
        { kind: 'message', topic: 'other' },
        { kind: 'outcome', workflowId: `${s.id} child` },
      ];
      return write(ask, 'suspend_workflow', [...owner(s, 'suspension'), JSON.stringify(waits)]);
    },
  },
  {
    label: 'continuing as new',
    scenes: OWNED,
    run: (ask, s) => write(ask, 'continue_workflow', [...owner(s, 'continue'), '"next"', 40, '{}']),
  },
  {
    label: 'the beginning of a rollback',
    scenes: OWNED,
    run: (ask, s) => write(ask, 'begin_rollback', [...owner(s, 'rollback'), 40, 'failed', '"failed"']),
  },
  {
    label: 'the plan of a rollback',
    scenes: ROLLING,
    run: (ask, s) =>
      write(ask, 'plan_rollback', [...owner(s, 'more plan'), '[{"seq": 9, "name": "undo", "undoes": 1}]']),
  },
  {
    label: 'the end of a compensation',
    scenes: ROLLING,
    run: (ask, s) => write(ask, 'checkpoint_one', step(s, {}, 8, 'compensation')),
  },
  {
    label: 'the failure of a compensation',
    scenes: ROLLING,
    run: (ask, s) => write(ask, 'fail_compensation', [...owner(s, 'failure'), 8, '"no"', 'it failed']),
  },
  {
    label: 'the end of a stuck workflow',
    scenes: OWNERS,
    run: (ask, s) => plain(ask, 'fail_stuck_workflow', [s.id, s.token, s.uuid('stuck'), '"stuck"']),
  },
  {
    label: 'the mark of a stuck workflow',
    scenes: OWNERS,
    run: (ask, s) => plain(ask, 'mark_stuck', [s.id, s.token, 'slow']),
  },
  // Transactions
  {
    label: 'the generations of transactions',
    scenes: OWNERS,
    run: (ask, s) => plain(ask, 'transaction_generations', [s.id, s.token]),
  },
  {
    label: 'the question what became of a transaction',
    scenes: OWNED,
    run: (ask, s) => plain(ask, 'transaction_outcome', [s.id, 25, s.uuid('transaction')]),
  },
  // Gaining ownership
  {
    label: 'a claim',
    isClaim: true,
    scenes: EVERYWHERE,
    run: async (ask, s) => {
      const found = await call<{ workflow_id: string | null }>(ask, 'claim_work', [
        ...[`${s.id} claimer`, 1, 'v1', ['flow'], 10, [s.id], '"too many attempts"', null],
      ]);
      return found.some((row) => row.workflow_id === s.id) ? 'through' : 'held up';
    },
  },
  {
    label: 'a claim by an older release',
    isClaim: true,
    scenes: EVERYWHERE,
    run: (ask, s) =>
      orAgain(ask, 'claim_workflows', [`${s.id} claimer`, 1, 'v1', ['flow'], 10, [s.id], '"too many attempts"']),
  },
];
