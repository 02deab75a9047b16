import { expect, test } from 'vitest';
import { Scheduler, type SchedulerOptions } from '../../src/fleet/scheduler.js';
import { systemRuntime } from '../../src/runtime/system-runtime.js';
import type { DueSchedule, FireRequest } from '../../src/store/schedule-store.js';
import { silentLogger, waitUntil } from '../support/launch.js';

const HOUR_MS = 3_600_000;
const NOW_MS = Date.parse('2026-01-01T00:00:01Z');

/** Schedules in memory, whose clock stands still. */
class FakeSchedules {
  readonly schedules = new Map<string, DueSchedule>();
  readonly fired: string[] = [];
  dueCalls = 0;
  fail: (call: 'due' | 'fire', name: string) => boolean = () => false;

  add(name: string, inMs: number, cron = '0 * * * *'): void {
    const schedule = { name, revision: 1, cron, timeZone: 'UTC', catchUp: 'all' as const };
    this.schedules.set(name, { ...schedule, nextMs: NOW_MS + inMs, nowMs: NOW_MS });
  }

  due(after: DueSchedule | null, limit: number): Promise<readonly DueSchedule[]> {
    this.dueCalls += 1;
    if (this.fail('due', '')) return Promise.reject(new Error('The database is away.'));
    const key = ({ nextMs, name }: DueSchedule): string => `${String(nextMs)} ${name}`;
    const sorted = [...this.schedules.values()].sort((a, b) => (key(a) < key(b) ? -1 : 1));
    return Promise.resolve(sorted.filter((each) => after === null || key(each) > key(after)).slice(0, limit));
  }

  fire({ schedule: { name }, ticks, nextMs }: FireRequest): ReturnType<SchedulerOptions['store']['fire']> {
    const found = this.schedules.get(name);
    if (found === undefined || this.fail('fire', name)) return Promise.reject(new Error('The database is away.'));
    this.schedules.set(name, { ...found, nextMs });
    const workflowIds = ticks.map((tick) => `${name} ${String((tick - NOW_MS) / HOUR_MS)}`);
    this.fired.push(...workflowIds);
    return Promise.resolve({ kind: 'fired', workflowIds });
  }
}

function schedulerOf(store: FakeSchedules, pollMs: number): Scheduler {
  return new Scheduler({
    runtime: systemRuntime,
    store,
    logger: silentLogger,
    pollMs,
    cancelledError: '',
    onFired: () => undefined,
  });
}

test('C38 however many schedules there are, an idle scheduler makes one query a poll', async () => {
  const store = new FakeSchedules();
  for (let index = 0; index < 500; index++) store.add(`s${String(index)}`, HOUR_MS + index);
  const scheduler = schedulerOf(store, HOUR_MS);
  scheduler.start();
  await waitUntil(() => store.dueCalls > 0, 'it has looked');
  await scheduler.stop();
  expect(store.dueCalls).toBe(1);
});

test('C41 a schedule that cannot be fired, or understood, keeps no other one back, and is not hammered', async () => {
  const store = new FakeSchedules();
  for (let index = 0; index < 20; index++) store.add(`broken ${String(index)}`, -HOUR_MS, 'not a cron');
  for (let index = 0; index < 20; index++) store.add(`failing ${String(index)}`, -HOUR_MS);
  for (let index = 0; index < 20; index++) store.add(`good ${String(index)}`, -1_000);
  store.fail = (call, name) => call === 'fire' && name.startsWith('failing');
  const scheduler = schedulerOf(store, HOUR_MS);
  scheduler.start();
  await waitUntil(() => store.fired.length >= 20, 'all good ones are fired');
  await scheduler.stop();
  expect(new Set(store.fired.map((id) => id.split(' ')[0]))).toEqual(new Set(['good']));
  // Two sweeps over sixty, eight at a time.
  expect(store.dueCalls).toBeLessThanOrEqual(18);
});

test('C39 a query that fails does not end the scheduler', async () => {
  const store = new FakeSchedules();
  store.add('a', -1_000);
  let failures = 3;
  store.fail = () => failures-- > 0;
  const scheduler = schedulerOf(store, 1);
  scheduler.start();
  await waitUntil(() => store.fired.length === 1, 'it is fired');
  await scheduler.stop();
});

test('it waits for the next tick, and is woken when schedules change', async () => {
  const store = new FakeSchedules();
  store.add('soon', 30);
  const scheduler = schedulerOf(store, HOUR_MS);
  scheduler.start();
  await waitUntil(() => store.dueCalls >= 2, 'the tick has come by');
  store.schedules.clear();
  await waitUntil(() => store.dueCalls >= 3, 'it has seen that there is none any more');
  const calls = store.dueCalls;
  store.add('new', -1_000);
  scheduler.wake();
  await waitUntil(() => store.fired.length === 1, 'the new one is fired');
  expect(store.dueCalls).toBeGreaterThan(calls);
  await scheduler.stop();
});
