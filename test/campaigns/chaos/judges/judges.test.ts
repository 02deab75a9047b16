import { expect, test } from 'vitest';
import type { ChaosRecord, Evidence } from '../evidence.js';
import type { Entry, Statement } from '../ledger/entry.js';
import { judgeChaos } from './index.js';

// A small ledger and the record that fits it, in which every judge finds nothing. Then one thing is wrong at a time.

const RUN = '00000000-0000-4000-8000-000000000001';
const RESULT = `only/1/${RUN}`;
const LATER = '00000000-0000-4000-8000-000000000002';

type Line = Statement & { readonly who?: string };

const LINES: readonly Line[] = [
  { what: 'phase', phase: 'faults', who: 'supervisor' },
  { what: 'invoke', op: 'a', kind: 'start', workflowId: 'w', value: '[]' },
  { what: 'ok', op: 'a' },
  { what: 'body', run: RUN, key: 'k', workflowId: 'w', step: 'only', epoch: 1 },
  { what: 'body-end', run: RUN, how: 'done' },
  { what: 'step', workflowId: 'w', step: 'only', epoch: 1, seq: 0, value: `"${RESULT}"` },
  { what: 'sleep', workflowId: 'w', epoch: 1, seq: 1, ms: 40 },
  { what: 'awake', workflowId: 'w', epoch: 1, seq: 1, ms: 40 },
  { what: 'step', workflowId: 'w', step: 'first news', epoch: 1, seq: 2 },
  { what: 'step', workflowId: 'w', step: 'post', epoch: 1, seq: 3 },
  { what: 'delivered', eventId: 'e', workflowId: 'w', payload: 'to post' },
  { what: 'invoke', op: 'b', kind: 'send', workflowId: 'm', value: '"hello"', who: 'client' },
  { what: 'ok', op: 'b', who: 'client' },
  { what: 'outcome', workflowId: 'w', value: `"${RESULT}"` },
  { what: 'hit', fault: 'kill', detail: '', who: 'supervisor' },
  { what: 'phase', phase: 'heal', who: 'supervisor' },
  { what: 'phase', phase: 'settled', who: 'supervisor' },
  { what: 'report', report: { running: 0, timers: 3, timersAtLaunch: 3, parked: 0, conflicts: 0 } },
  { what: 'connections', process: 'executor 0', count: 3, limit: 9, who: 'supervisor' },
];

/** Each line a hundred milliseconds after the one before. */
function ledger(lines: readonly Line[]): readonly Entry[] {
  return lines.map((line, n) => ({ who: 'executor 0', ...line, n, at: 1_000 + n * 100 }));
}

const CHANGE = {
  workflow_id: 'w', verb: 'UPDATE', version_before: 1, version: 2, epoch_before: 1, epoch: 1, token_before: 't1',
  token: 't1', status: 'PENDING', executor_id: 'executor 0', app: 'executor 0', at: 1_500,
} as const; // prettier-ignore
const WRITTEN = {
  workflow_id: 'w',
  relation: 'step_result',
  verb: 'INSERT',
  seq: 0,
  epoch: 1,
  app: 'executor 0',
} as const;
const STEP = {
  workflow_id: 'w',
  seq: 0,
  name: 'only',
  kind: 'step',
  output: `"${RESULT}"`,
  epoch: 1,
  version: 2,
  at: 1_500,
};

const RECORD: ChaosRecord = {
  statuses: [{ workflow_id: 'w', name: 'short', status: 'SUCCESS', epoch: 1, version: 3 }],
  inputs: [{ workflow_id: 'w', input: '[]' }],
  outcomes: [
    { workflow_id: 'w', status: 'SUCCESS', output: `"${RESULT}"`, error: null, epoch: 1, at: 2_200 },
    { workflow_id: 'm', status: 'SUCCESS', output: '["hello"]', error: null, epoch: 1, at: 2_200 },
  ],
  steps: [
    STEP,
    { ...STEP, seq: 1, name: 'sleep', kind: 'sleep', output: 'null', at: 1_700, version: 3 },
    { ...STEP, seq: 2, name: 'news', kind: 'event', output: 'null', version: 4 },
    { ...STEP, seq: 3, name: 'post', kind: 'outbox', output: 'null', version: 5 },
    { ...STEP, seq: 4, name: 'before', kind: 'value', output: '"to post"', version: 6 },
    { ...STEP, seq: 5, name: 'pay', kind: 'transaction', output: `"pay/1/${LATER}"`, version: 7 },
  ],
  sleeps: [{ workflow_id: 'w', seq: 1, wake_at: 1_690, at: 1_650 }],
  ended: [{ workflow_id: 'x', epoch: 1, how: 'taken over' }],
  changes: [
    {
      ...CHANGE,
      ...{ n: 1, verb: 'INSERT', version_before: null, version: 1, token_before: null, epoch_before: null },
    },
    { ...CHANGE, n: 2 },
    { ...CHANGE, n: 4, version_before: 2, version: 3, token: null, status: 'SUCCESS' },
  ],
  written: [
    { ...WRITTEN, n: 3 },
    { ...WRITTEN, n: 5, relation: 'workflow_outcome', seq: null },
  ],
  payments: [{ workflow_id: 'w', step: 'pay', epoch: 1, run: LATER }],
  cents: 1,
  events: [{ workflow_id: 'w', key: 'news', value: '"w 1"' }],
  messages: [{ workflow_id: 'm', payload: '"hello"', consumed: 0 }],
  undelivered: 0,
};

function evidence(lines: readonly Line[] = LINES, record: Partial<ChaosRecord> = {}): Evidence {
  return {
    entries: ledger(lines),
    record: { ...RECORD, ...record },
    fresh: new Map([['w', `"${RESULT}"`]]),
    faults: [{ name: 'kill', wants: { takeover: true } }],
    refusals: 0,
    documentedCodes: ['LAUNCH_TIMEOUT'],
    options: {
      executors: 3,
      chaosMs: 1,
      partMs: 1,
      outstanding: 1,
      healMs: 10_000,
      handleMs: 2_000,
      seed: 1,
      leaseMs: 500,
      leastAcknowledged: 5,
    },
  };
}

function colours(given: Evidence): Readonly<Record<string, string>> {
  return Object.fromEntries(judgeChaos(given).map(({ judge, is }) => [judge, is]));
}

function found(given: Evidence): readonly string[] {
  return Object.entries(colours(given)).flatMap(([judge, is]) => (is === 'green' ? [] : [judge]));
}

const changed = (n: number, change: Partial<ChaosRecord['changes'][number]>): Partial<ChaosRecord> => ({
  changes: RECORD.changes.map((each) => (each.n === n ? { ...each, ...change } : each)),
});
const stepped = (seq: number, step: Partial<ChaosRecord['steps'][number]>): Partial<ChaosRecord> => ({
  steps: RECORD.steps.map((each) => (each.seq === seq ? { ...each, ...step } : each)),
});
const TWO = { workflowId: 'w', step: 'only', key: 'k' } as const;
const QUEUED = { what: 'body', key: 'k', step: 'one', epoch: 1, queue: 'key 0' } as const;

test('a ledger and the record that fits it are green for every judge', () => {
  expect(found(evidence())).toEqual([]);
});

const CASES: readonly (readonly [wrong: string, judge: string, given: Evidence])[] = [
  [
    'too little was acknowledged',
    'substance',
    { ...evidence(), options: { ...evidence().options, leastAcknowledged: 200 } },
  ],
  ['no fault hit', 'substance', evidence(LINES.filter(({ what }) => what !== 'hit'))],
  ['nothing was taken over, where the fault calls for it', 'substance', evidence(LINES, { ended: [] })],
  ['an acknowledged start is gone', 'starts', evidence(LINES, { inputs: [] })],
  ['an input is nobody’s', 'starts', evidence(LINES, { inputs: [{ workflow_id: 'w', input: '[1]' }] })],
  ['an acknowledged result is gone', 'checkpoints', evidence(LINES, { steps: RECORD.steps.slice(0, 3) })],
  ['an acknowledged result is another', 'checkpoints', evidence(LINES, stepped(0, { output: `"only/1/${LATER}"` }))],
  [
    'somebody was told another outcome',
    'outcomes',
    evidence([...LINES, { what: 'outcome', workflowId: 'w', value: '"other"', who: 'client' }]),
  ],
  ['an outcome that was told is gone', 'outcomes', evidence(LINES, { outcomes: RECORD.outcomes.slice(1) })],
  ['a fresh handle returns something else', 'outcomes', { ...evidence(), fresh: new Map([['w', '"other"']]) }],
  [
    'a workflow failed that nobody interfered with',
    'failures',
    evidence(LINES, {
      outcomes: [
        ...RECORD.outcomes,
        { workflow_id: 'p', status: 'ERROR', output: null, error: '{}', epoch: 1, at: 2_000 },
      ],
    }),
  ],
  ['a message is lost', 'messages', evidence(LINES, { messages: [] })],
  [
    'a message is received twice',
    'messages',
    evidence(LINES, {
      outcomes: RECORD.outcomes.map((each) => ({
        ...each,
        output: each.workflow_id === 'm' ? '["hello","hello"]' : each.output,
      })),
    }),
  ],
  ['an event is lost', 'events', evidence(LINES, { events: [] })],
  ['an event of the outbox is not delivered', 'events', evidence(LINES.filter(({ what }) => what !== 'delivered'))],
  ['an event of the outbox is left', 'events', evidence(LINES, { undelivered: 1 })],
  [
    'an event is delivered under two IDs',
    'events',
    evidence([...LINES, { what: 'delivered', eventId: 'f', workflowId: 'w', payload: 'to post' }]),
  ],
  ['a version is missing', 'versions', evidence(LINES, changed(4, { version_before: 3, version: 4 }))],
  ['a version is there twice', 'versions', evidence(LINES, changed(4, { version_before: 1, version: 2 }))],
  ['versions were skipped without results', 'versions', evidence(LINES, changed(4, { version: 12 }))],
  ['an epoch has a second token', 'owners', evidence(LINES, changed(2, { token: 't2' }))],
  ['a stranger writes in an epoch', 'owners', evidence(LINES, changed(2, { app: 'executor 1' }))],
  ['a stranger ends a workflow', 'owners', evidence(LINES, changed(4, { app: 'executor 1' }))],
  [
    'an earlier epoch writes after a later one',
    'owners',
    evidence(LINES, {
      changes: [
        ...RECORD.changes.slice(0, 2),
        { ...CHANGE, n: 3, version_before: 2, version: 3, token: 't2', epoch: 2, app: 'executor 1' },
      ],
      written: [{ ...WRITTEN, n: 4 }],
    }),
  ],
  [
    'a result was changed',
    'results',
    evidence(LINES, { written: [...RECORD.written, { ...WRITTEN, n: 6, verb: 'UPDATE' }] }),
  ],
  [
    'an outcome was recorded twice',
    'results',
    evidence(LINES, { written: [...RECORD.written, { ...WRITTEN, n: 6, relation: 'workflow_outcome', seq: null }] }),
  ],
  ['a result is of another epoch’s body', 'results', evidence(LINES, stepped(0, { epoch: 2 }))],
  [
    'a transaction took effect twice',
    'transactions',
    evidence(LINES, { payments: [...RECORD.payments, ...RECORD.payments], cents: 2 }),
  ],
  ['a transaction took no effect', 'transactions', evidence(LINES, { payments: [], cents: 0 })],
  ['half of a transaction took effect', 'transactions', evidence(LINES, { cents: 2 })],
  ['a body ran twice in an epoch', 'effects', evidence([...LINES, { what: 'body', run: LATER, epoch: 1, ...TWO }])],
  ['a recorded step ran again', 'effects', evidence([...LINES, { what: 'body', run: LATER, epoch: 2, ...TWO }])],
  ['a step has two keys', 'effects', evidence([...LINES, { what: 'body', run: LATER, epoch: 0, ...TWO, key: 'l' }])],
  ['a recorded step never ran', 'effects', evidence(LINES.filter(({ what }) => what !== 'body'))],
  [
    'too many bodies of a key are live',
    'limits',
    evidence([
      ...LINES,
      ...[1, 2, 3, 4].map((each): Line => ({ ...QUEUED, run: String(each), workflowId: `q ${String(each)}` })),
    ]),
  ],
  [
    'a sleep ended early',
    'timers',
    evidence(LINES, { sleeps: [{ workflow_id: 'w', seq: 1, wake_at: 1_900, at: 1_860 }] }),
  ],
  [
    'a sleep was to be shorter',
    'timers',
    evidence(LINES, { sleeps: [{ workflow_id: 'w', seq: 1, wake_at: 1_690, at: 1_680 }] }),
  ],
  [
    'a body begins although the loss is known',
    'fencing',
    evidence([
      ...LINES,
      { what: 'lost', workflowId: 'z', epoch: 1 },
      { what: 'body', run: LATER, key: 'k', workflowId: 'z', step: 'a', epoch: 1 },
    ]),
  ],
  [
    'two late bodies of one execution',
    'fencing',
    evidence([
      ...LINES,
      { what: 'body', run: '1', key: 'a', workflowId: 'z', step: 'a', epoch: 2, who: 'executor 1' },
      { what: 'body', run: '2', key: 'a', workflowId: 'z', step: 'a', epoch: 1 },
      { what: 'body', run: '3', key: 'b', workflowId: 'z', step: 'b', epoch: 1 },
    ]),
  ],
  ['a handle is late', 'handles', { ...evidence(), options: { ...evidence().options, handleMs: 50 } }],
  [
    'a workflow has not ended',
    'ends',
    evidence(LINES, { statuses: [{ workflow_id: 'w', name: 'short', status: 'PENDING', epoch: 1, version: 3 }] }),
  ],
  ['an outcome is missing', 'ends', evidence(LINES, { outcomes: RECORD.outcomes.slice(1) })],
  [
    'an executor still has timers',
    'tidiness',
    evidence([
      ...LINES,
      { what: 'report', report: { running: 0, timers: 30, timersAtLaunch: 3, parked: 0, conflicts: 0 } },
    ]),
  ],
  [
    'a connection is left over',
    'tidiness',
    evidence([...LINES, { what: 'connections', process: 'executor 0', count: 10, limit: 9 }]),
  ],
  [
    'a rejection is not handled',
    'tidiness',
    evidence([...LINES, { what: 'error', where: 'unhandled', code: 'LAUNCH_TIMEOUT', message: '' }]),
  ],
  [
    'an error is not documented',
    'tidiness',
    evidence([...LINES, { what: 'error', where: 'call', code: 'TypeError: x', message: '' }]),
  ],
  [
    'a process ended by itself',
    'tidiness',
    evidence([...LINES, { what: 'process', process: 'executor 0', happened: 'crashed' }]),
  ],
];

test.each(CASES)('%s: the judge "%s" finds it', (_, judge, given) => {
  expect(found(given)).toContain(judge);
});
