import { call, control, EVERYWHERE, LIVE, type Operation } from './operation.js';
import type { Scene } from './scenes.js';

const BY = ['somebody', 'why'] as const;

/** The arguments that every control operation begins with. */
const by = (s: Scene, nonce: string): unknown[] => [s.id, s.uuid(nonce), ...BY];

/** What people do to a workflow. */
export const CONTROLS: readonly Operation[] = [
  {
    label: 'a cancellation',
    scenes: EVERYWHERE,
    run: (ask, s) => control(ask, 'cancel_workflow', [...by(s, 'cancel'), 'cancel', '"cancelled"']),
  },
  {
    label: 'a cancellation that keeps the children',
    scenes: ['owned'],
    run: (ask, s) => control(ask, 'cancel_workflow', [...by(s, 'cancel, keep'), 'keep', '"cancelled"']),
  },
  {
    label: 'a cancellation with compensation',
    scenes: LIVE,
    run: (ask, s) => control(ask, 'cancel_with_compensation', [...by(s, 'compensate'), 'cancel', '"cancelled"']),
  },
  {
    label: 'a resume',
    scenes: ['owned', 'blocked', 'suspended', 'cancelled', 'ended', 'rollback failed'],
    run: (ask, s) => control(ask, 'resume_workflow', by(s, 'resume')),
  },
  {
    label: 'a change of priority',
    scenes: [...LIVE, 'ended'],
    run: (ask, s) => control(ask, 'prioritize_workflow', [...by(s, 'priority'), 7]),
  },
  {
    label: 'a change of the app version',
    scenes: [...LIVE, 'ended'],
    run: (ask, s) => control(ask, 'set_app_version', [...by(s, 'version'), 'v2']),
  },
  {
    label: 'a rewind to the second step',
    scenes: EVERYWHERE,
    run: (ask, s) => control(ask, 'rewind_workflow', [...by(s, 'rewind'), 1, '"parent rewound"']),
  },
  {
    label: 'a rewind that takes nothing away',
    scenes: ['owned', 'ended', 'cancelled'],
    run: (ask, s) => control(ask, 'rewind_workflow', [...by(s, 'rewind, end'), 7, '"parent rewound"']),
  },
  {
    label: 'the recording of a step’s true result',
    scenes: EVERYWHERE,
    run: (ask, s) => control(ask, 'repair_step', [...by(s, 'repair'), 6, 'result', '"paid"', null, false]),
  },
  {
    label: 'a retry of a step by hand',
    scenes: ['owned', 'blocked', 'suspended', 'cancelled'],
    run: (ask, s) => control(ask, 'repair_step', [...by(s, 'retry'), 6, 'retry', null, null, true]),
  },
  {
    label: 'the skipping of a compensation',
    scenes: ['rolling back', 'rollback failed', 'blocked'],
    run: (ask, s) => control(ask, 'skip_compensation', [...by(s, 'skip'), 8, '"skipped"']),
  },
  {
    label: 'a fork',
    scenes: EVERYWHERE,
    run: (ask, s) => control(ask, 'fork_workflow', [...by(s, 'fork'), 3, `${s.id} fork`, null]),
  },
  {
    label: 'a deletion',
    scenes: EVERYWHERE,
    run: (ask, s) => control(ask, 'delete_workflow', [...by(s, 'delete'), true, '"parent deleted"']),
  },
  {
    label: 'a deletion of what has ended',
    scenes: ['owned', 'ended', 'cancelled'],
    run: (ask, s) => control(ask, 'delete_workflow', [...by(s, 'retention'), false, '"parent deleted"']),
  },
  {
    label: 'the redelivery of an event',
    scenes: ['owned', 'ended'],
    run: async (ask, s) => {
      const event = await eventOf(ask, s);
      const [row] = await call<Record<string, string>>(ask, 'redeliver_event', [event, s.uuid('redeliver'), ...BY]);
      return row?.['redeliver_event'] === 'done' ? 'through' : 'refused';
    },
  },
  {
    label: 'the discarding of an event',
    scenes: ['owned', 'ended'],
    run: async (ask, s) => {
      const event = await eventOf(ask, s);
      const [row] = await call<Record<string, string>>(ask, 'discard_event', [event, s.uuid('discard'), ...BY]);
      return row?.['discard_event'] === 'done' ? 'through' : 'refused';
    },
  },
];

/** The event that the workflow has added to the outbox: an ID made of its start and its call. */
async function eventOf(ask: Parameters<Operation['run']>[0], s: Scene): Promise<string> {
  const [row] = await ask<{ id: string }>('SELECT @outbox_event_id($1, 5, 0) AS id', [s.uuid('first start')]);
  return row?.id ?? '';
}
