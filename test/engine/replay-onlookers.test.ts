import { expect, test } from 'vitest';
import { Replay } from '../../src/engine/replay.js';
import { systemRuntime } from '../../src/runtime/system-runtime.js';
import type { RecordedStep } from '../../src/store/store.js';

const recorded: RecordedStep = {
  seq: 1,
  name: 'a',
  kind: 'step',
  complete: true,
  output: '1',
  error: null,
  childId: null,
  attempts: 1,
  remainingMs: null,
  recordVersion: 2,
};

const replayOf = (history: readonly RecordedStep[]): Replay =>
  new Replay(systemRuntime, history, () => {
    throw new Error('The replay stands still.');
  });

// A workflow that waits for an update or a message beside its recorded calls: queries to it timed out when it was loaded for them.
test('who only looks is told that the replay is over, also where calls without a result wait beside the recorded ones', async () => {
  const replay = replayOf([recorded]);
  const seen: string[] = [];
  const looked = replay.whenAtRest().then(() => seen.push('looked'));
  const live = replay.over().then(() => seen.push('live'));
  const turn = replay.turnOf(recorded).then(() => seen.push('recorded'));
  await Promise.all([turn, live, looked]);
  expect(seen).toEqual(['recorded', 'live', 'looked']);
});

test('who begins to look while such calls are let through is told, too', async () => {
  const replay = replayOf([]);
  const live = replay.over();
  await replay.whenAtRest();
  await live;
  expect(replay.isOver).toBe(true);
});

// A suspended workflow whose deadline passed began its rollback only after the time that late code gets.
test('who waits until the code is where it was is told with the last recorded result, whatever the code asks for next', async () => {
  const replay = replayOf([recorded]);
  const seen: string[] = [];
  const followed = replay.whenFollowed().then(() => seen.push('followed'));
  expect(replay.ask(recorded.seq)).toBe(recorded);
  await replay.turnOf(recorded).then(() => seen.push('recorded'));
  await followed;
  expect(seen).toEqual(['recorded', 'followed']);
});
