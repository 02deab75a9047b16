import { type Ask, bump } from '../support-protocol.js';
import { call, control, EVERYWHERE, LIVE, type Operation, plain, type Tried, write } from './operation.js';
import type { Scene } from './scenes.js';

const enqueue = (s: Scene, id: string, nonce: string, how: { dedup?: string; debounce?: string }): unknown[] => [
  ...[[id], [s.uuid(nonce)], ['flow'], [null], ['"other input"'], [100], [null], [null]],
  ...[[`${s.id} queue`], [0], [''], [how.debounce === undefined ? null : 60_000]],
  ...[[how.dedup ?? null], [null], [how.dedup === undefined ? null : '"replaced"'], [how.debounce ?? null]],
  [null],
];

/** What others do beside a workflow: those who start, send and ask, its relatives, executors, relays. */
export const NEIGHBOURS: readonly Operation[] = [
  {
    label: 'a start of the same ID',
    scenes: EVERYWHERE,
    run: (ask, s) =>
      write(ask, 'start_batch', [
        ...[`${s.id} owner`, 1, 'v1', [s.id], [s.uuid('start token')], [s.uuid('start')], ['flow'], [null]],
        ...[['"input"'], [100], [null], [null]],
      ]),
  },
  {
    label: 'an enqueuing of the same ID',
    scenes: ['owned', 'ended'],
    run: (ask, s) => write(ask, 'enqueue_batch', enqueue(s, s.id, 'enqueue', {})),
  },
  {
    label: 'an enqueuing that takes the place of another',
    scenes: ['owned', 'enqueued'],
    run: (ask, s) => write(ask, 'enqueue_batch', enqueue(s, `${s.id} instead`, 'instead', { dedup: 'dedup' })),
  },
  {
    label: 'an enqueuing that is debounced',
    scenes: ['owned', 'enqueued'],
    run: (ask, s) => write(ask, 'enqueue_batch', enqueue(s, `${s.id} later`, 'later', { debounce: 'debounce' })),
  },
  {
    label: 'a message',
    scenes: EVERYWHERE,
    run: (ask, s) => write(ask, 'send_batch', [[s.id], ['message two'], ['topic'], ['"again"']]),
  },
  {
    label: 'the same message again',
    scenes: ['owned', 'suspended'],
    run: (ask, s) => write(ask, 'send_batch', [[s.id], ['message one'], ['topic'], ['"hello"']]),
  },
  {
    label: 'a message by a trigger',
    scenes: LIVE,
    run: (ask, s) => plain(ask, 'send_message', [s.id, 'other', '"hello"', 'message three']),
  },
  {
    label: 'a question',
    scenes: EVERYWHERE,
    run: (ask, s) => write(ask, 'ask_query', [s.id, s.uuid('second question'), 'state', '[]', 60_000]),
  },
  {
    label: 'an answer',
    scenes: ['owned, in a queue', 'blocked', 'enqueued', 'ended'],
    run: (ask, s) => plain(ask, 'answer_query', [s.id, s.uuid('question'), '"fine"', null]),
  },
  {
    label: 'the end of waiting for an answer',
    scenes: ['owned, in a queue', 'blocked'],
    run: (ask, s) => plain(ask, 'forget_query', [s.id, s.uuid('question')]),
  },
  { label: 'a look at what is to be woken', scenes: EVERYWHERE, run: (ask) => drain(ask) },
  {
    label: 'a message, and a look at what is to be woken',
    scenes: ['owned', 'suspended'],
    run: async (ask, s) => {
      const tried = await write(ask, 'send_batch', [[s.id], ['message five'], ['other'], ['"wake up"']]);
      return tried === 'through' ? drain(ask) : tried;
    },
  },
  {
    label: 'a write without ownership',
    scenes: ['owned', 'rolling back'],
    run: async (ask, s) => {
      await bump(ask, s.id);
      return 'through';
    },
  },
  {
    label: 'the outcome of the child',
    scenes: EVERYWHERE,
    run: (ask, s) => {
      const child = [[`${s.id} child`], [s.uuid('child token')], [1], [s.uuid('child outcome')]];
      return write(ask, 'complete_batch', [...child, ['SUCCESS'], ['"child"'], [null], [null]]);
    },
  },
  {
    label: 'a cancellation of the child',
    scenes: LIVE,
    run: (ask, s) =>
      control(ask, 'cancel_workflow', [
        `${s.id} child`,
        s.uuid('cancel child'),
        'somebody',
        null,
        'cancel',
        '"cancelled"',
      ]),
  },
  {
    label: 'a deletion of the child',
    scenes: EVERYWHERE,
    run: (ask, s) =>
      control(ask, 'delete_workflow', [`${s.id} child`, s.uuid('delete child'), 'somebody', null, true, '"deleted"']),
  },
  {
    label: 'a deletion of the receiver',
    scenes: ['owned'],
    run: (ask, s) =>
      control(ask, 'delete_workflow', [
        `${s.id} receiver`,
        s.uuid('delete receiver'),
        'somebody',
        null,
        true,
        '"deleted"',
      ]),
  },
  {
    label: 'a message of the receiver to it',
    scenes: ['owned', 'suspended'],
    run: (ask, s) => {
      const receiver = [`${s.id} receiver`, s.uuid('receiver token'), 1, s.uuid('back')];
      return write(ask, 'record_send', [...receiver, 5, 'send', s.id, 'topic', '"back"', null, '"sent"', 0]);
    },
  },
  {
    label: 'a suspension that waits for it',
    scenes: EVERYWHERE,
    run: (ask, s) => {
      const waits = JSON.stringify([
        { kind: 'outcome', workflowId: s.id },
        { kind: 'message', topic: 'topic' },
      ]);
      const receiver = [`${s.id} receiver`, s.uuid('receiver token'), 1, s.uuid('receiver suspended')];
      return write(ask, 'suspend_workflow', [...receiver, waits]);
    },
  },
  {
    label: 'the owner’s heartbeat',
    scenes: ['owned', 'rolling back'],
    run: (ask, s) => plain(ask, 'heartbeat', [`${s.id} owner`, 1, 3_600_000]),
  },
  {
    label: 'another process of the owner’s ID',
    scenes: ['owned'],
    run: (ask, s) => plain(ask, 'register_executor', [`${s.id} owner`, 'v1', 3_600_000, 'host', 2]),
  },
  {
    label: 'the owner’s leaving',
    scenes: ['owned'],
    run: (ask, s) => plain(ask, 'deregister_executor', [`${s.id} owner`, 1]),
  },
  {
    label: 'a deletion of the queue',
    scenes: ['owned, in a queue', 'enqueued'],
    run: async (ask, s) => {
      const [row] = await call<{ result: string }>(ask, 'delete_queue', [`${s.id} queue`, true]);
      if (row?.result === 'busy') return 'held up';
      return row?.result === 'done' ? 'through' : 'refused';
    },
  },
  {
    label: 'a relay’s claim of its event',
    scenes: ['owned', 'ended'],
    run: async (ask, s) => ((await claimEvent(ask, s)) === undefined ? 'held up' : 'through'),
  },
  {
    label: 'the delivery of its event',
    scenes: ['owned', 'ended'],
    run: async (ask, s) => {
      const event = await claimEvent(ask, s);
      if (event === undefined) return 'held up';
      return plain(ask, 'settle_events', [[event.event_id], [event.token], ['delivered'], [null], [null], [null]]);
    },
  },
];

async function claimEvent(ask: Ask, s: Scene): Promise<{ event_id: string; token: string } | undefined> {
  const [event] = await call<{ event_id: string; token: string }>(ask, 'claim_events', [
    [`${s.id} topic`],
    [10],
    60_000,
  ]);
  return event;
}

async function drain(ask: Ask): Promise<Tried> {
  const [row] = await call<{ drain_wakeups: number }>(ask, 'drain_wakeups', [1000]);
  return row?.drain_wakeups === 0 ? 'held up' : 'through';
}
