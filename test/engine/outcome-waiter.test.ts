import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { OutcomeWaiter } from '../../src/engine/outcome-waiter.js';
import { systemRuntime } from '../../src/runtime/system-runtime.js';
import type { FoundOutcome } from '../../src/store/store.js';

const POLL_MS = 1_000;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setImmediate', 'clearImmediate', 'performance'] });
});
afterEach(() => {
  vi.useRealTimers();
});

function makeWaiter(): { waiter: OutcomeWaiter; asked: string[][]; found: Map<string, FoundOutcome> } {
  const asked: string[][] = [];
  const found = new Map<string, FoundOutcome>();
  const waiter = new OutcomeWaiter(
    {
      readOutcomes: (workflowIds) => {
        asked.push([...workflowIds]);
        return Promise.resolve(workflowIds.flatMap((id) => found.get(id) ?? []));
      },
    },
    POLL_MS,
    systemRuntime,
  );
  return { waiter, asked, found };
}

function outcome(workflowId: string): FoundOutcome {
  return { kind: 'outcome', workflowId, status: 'SUCCESS', output: `"${workflowId}"`, error: null };
}

test('a thousand waiting handles cost one query a poll', async () => {
  const { waiter, asked, found } = makeWaiter();
  const ids = Array.from({ length: 1_000 }, (_, index) => `w${String(index)}`);
  const results = Promise.all(ids.map((id) => waiter.wait(id, { runsHere: false })));
  await vi.advanceTimersByTimeAsync(1);
  expect(asked.map(({ length }) => length)).toEqual([1_000]);
  await vi.advanceTimersByTimeAsync(2 * POLL_MS);
  expect(asked.map(({ length }) => length)).toEqual([1_000, 1_000, 1_000]);
  for (const id of ids) found.set(id, outcome(id));
  await vi.advanceTimersByTimeAsync(POLL_MS);
  expect((await results).map(({ output }) => output)).toEqual(ids.map((id) => `"${id}"`));
  await vi.advanceTimersByTimeAsync(10 * POLL_MS);
  expect(asked).toHaveLength(4);
  expect(vi.getTimerCount()).toBe(0);
});

test('an outcome that is handed over in time is never asked for', async () => {
  const { waiter, asked } = makeWaiter();
  const result = waiter.wait('w', { runsHere: true });
  waiter.settle('w', { status: 'SUCCESS', output: '1', error: null }, performance.now());
  expect((await result).output).toBe('1');
  await vi.advanceTimersByTimeAsync(2 * POLL_MS);
  expect(asked).toEqual([]);
});

test('what this process has just enqueued is not asked about, unless something has been heard of it', async () => {
  const { waiter, asked, found } = makeWaiter();
  for (const id of ['waits', 'hinted', 'ended', 'taken', 'forgotten']) waiter.willEnqueue(id);
  waiter.check(['hinted']);
  waiter.settle('ended', { status: 'SUCCESS', output: '1', error: null }, performance.now());
  waiter.notEnqueued('taken');
  const waits = waiter.wait('waits', { runsHere: false });
  for (const id of ['hinted', 'ended', 'taken']) {
    found.set(id, outcome(id));
    void waiter.wait(id, { runsHere: false });
  }
  await vi.advanceTimersByTimeAsync(1);
  expect(asked).toEqual([['hinted', 'ended', 'taken']]);
  // It ends elsewhere, and the hint gets lost.
  found.set('waits', outcome('waits'));
  await vi.advanceTimersByTimeAsync(POLL_MS);
  expect((await waits).output).toBe('"waits"');
  await vi.advanceTimersByTimeAsync(2 * POLL_MS);
  found.set('forgotten', outcome('forgotten'));
  expect(
    (await Promise.all([waiter.wait('forgotten', { runsHere: false }), vi.advanceTimersByTimeAsync(1)]))[0].output,
  ).toBe('"forgotten"');
  // After a gap in what is heard, nothing is known of anybody.
  waiter.willEnqueue('gap');
  waiter.check(null);
  void waiter.wait('gap', { runsHere: false });
  await vi.advanceTimersByTimeAsync(1);
  expect(asked.at(-1)).toEqual(['gap']);
});

test('a hint is followed at once; one that names nobody who waits costs nothing', async () => {
  const { waiter, asked, found } = makeWaiter();
  const result = waiter.wait('w', { runsHere: true });
  waiter.check(['other']);
  await vi.advanceTimersByTimeAsync(1);
  expect(asked).toEqual([]);
  found.set('w', outcome('w'));
  waiter.check(['w', 'other']);
  await vi.advanceTimersByTimeAsync(1);
  expect((await result).output).toBe('"w"');
  expect(asked).toEqual([['w']]);
});

test('C43 a hint that was lost costs one poll', async () => {
  const { waiter, found } = makeWaiter();
  const result = waiter.wait('w', { runsHere: false });
  await vi.advanceTimersByTimeAsync(1);
  found.set('w', outcome('w'));
  await vi.advanceTimersByTimeAsync(POLL_MS);
  expect((await result).output).toBe('"w"');
});

test('a workflow that is not there rejects its waiters, and closing rejects all', async () => {
  const { waiter, found } = makeWaiter();
  found.set('gone', { kind: 'missing', workflowId: 'gone' });
  const gone = waiter.wait('gone', { runsHere: false });
  const other = waiter.wait('other', { runsHere: false });
  const checks = [
    expect(gone).rejects.toMatchObject({ code: 'WORKFLOW_NOT_FOUND' }),
    expect(other).rejects.toMatchObject({ code: 'CLOSED' }),
  ];
  await vi.advanceTimersByTimeAsync(1);
  waiter.close();
  await Promise.all(checks);
  expect(vi.getTimerCount()).toBe(0);
});

test('the answer to a question is not for who began to wait after it was sent: it may be of before a resume', async () => {
  const answers: ((found: readonly FoundOutcome[]) => void)[] = [];
  const waiter = new OutcomeWaiter(
    {
      readOutcomes: () =>
        new Promise((resolve) => {
          answers.push(resolve);
        }),
    },
    POLL_MS,
    systemRuntime,
  );
  const first = waiter.wait('w', { runsHere: false });
  await vi.advanceTimersByTimeAsync(1);
  const second = waiter.wait('w', { runsHere: false });
  await vi.advanceTimersByTimeAsync(1);
  answers[0]?.([{ ...outcome('w'), output: '"old"' } as FoundOutcome]);
  answers[1]?.([{ ...outcome('w'), output: '"new"' } as FoundOutcome]);
  expect([(await first).output, (await second).output]).toEqual(['"old"', '"new"']);
  waiter.close();
});

// A reply of the completing write took so long that the workflow had been rewound: who waited for the new run was told the old outcome.
test('who began to wait after an execution had sent its outcome is not told that one, but what is on record', async () => {
  const { waiter, asked, found } = makeWaiter();
  const before = waiter.wait('w', { runsHere: true });
  const sentAt = performance.now();
  await vi.advanceTimersByTimeAsync(100);
  const after = waiter.wait('w', { runsHere: true });
  found.set('w', { ...outcome('w'), output: '"new"' } as FoundOutcome);
  waiter.settle('w', { status: 'SUCCESS', output: '"old"', error: null }, sentAt);
  expect((await before).output).toBe('"old"');
  await vi.advanceTimersByTimeAsync(1);
  expect((await after).output).toBe('"new"');
  expect(asked).toEqual([['w']]);
});
