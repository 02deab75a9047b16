import { expect, test } from 'vitest';
import { COUNTED_MISSES, FIRED_AT_ONCE, IN_TIME_MS, planFiring } from '../../src/fleet/firing-plan.js';
import { Ticks } from '../../src/fleet/ticks.js';

const at = (text: string): number => Date.parse(text);
const following = (cron: string, zone: string, from: string, count: number): string[] =>
  new Ticks(cron, zone).following(at(from), count).map((ms) => new Date(ms).toISOString().replace('.000Z', 'Z'));

test('seconds are the first of six fields; five fields begin with the minute', () => {
  expect(following('*/20 * * * * *', 'UTC', '2026-01-01T00:00:00Z', 3)).toEqual([
    '2026-01-01T00:00:20Z',
    '2026-01-01T00:00:40Z',
    '2026-01-01T00:01:00Z',
  ]);
  expect(following('30 9 * * MON-FRI', 'America/New_York', '2026-01-02T15:00:00Z', 2)).toEqual([
    '2026-01-05T14:30:00Z',
    '2026-01-06T14:30:00Z',
  ]);
  expect(following('@daily', 'Asia/Kolkata', '2026-01-01T00:00:00Z', 1)).toEqual(['2026-01-01T18:30:00Z']);
});

test('a fixed time that a change of clocks swallows fires at the end of the gap, and on its day', () => {
  expect(following('30 2 * * *', 'Europe/Berlin', '2025-03-29T00:00:00Z', 3)).toEqual([
    '2025-03-29T01:30:00Z',
    '2025-03-30T01:00:00Z',
    '2025-03-31T00:30:00Z',
  ]);
  expect(following('30 2,14 * * *', 'America/New_York', '2025-03-08T20:00:00Z', 2)).toEqual([
    '2025-03-09T07:00:00Z',
    '2025-03-09T18:30:00Z',
  ]);
  // Midnight itself is missing.
  expect(following('0 0 * * *', 'America/Sao_Paulo', '2018-11-03T12:00:00Z', 2)).toEqual([
    '2018-11-04T03:00:00Z',
    '2018-11-05T02:00:00Z',
  ]);
});

test('a fixed time that comes twice fires once, at the first', () => {
  expect(following('30 2 * * *', 'Europe/Berlin', '2025-10-25T12:00:00Z', 2)).toEqual([
    '2025-10-26T00:30:00Z',
    '2025-10-27T01:30:00Z',
  ]);
  expect(following('30 1 * * *', 'America/New_York', '2025-11-01T12:00:00Z', 2)).toEqual([
    '2025-11-02T05:30:00Z',
    '2025-11-03T06:30:00Z',
  ]);
});

test('intervals follow real time over a change of clocks: through the repeated hour twice, and past the gap', () => {
  expect(following('*/30 * * * *', 'Europe/Berlin', '2025-10-26T00:00:00Z', 5)).toEqual([
    '2025-10-26T00:30:00Z',
    '2025-10-26T01:00:00Z',
    '2025-10-26T01:30:00Z',
    '2025-10-26T02:00:00Z',
    '2025-10-26T02:30:00Z',
  ]);
  expect(following('*/30 * * * *', 'Europe/Berlin', '2025-03-30T00:30:00Z', 3)).toEqual([
    '2025-03-30T01:00:00Z',
    '2025-03-30T01:30:00Z',
    '2025-03-30T02:00:00Z',
  ]);
  const seconds = new Ticks('* * * * * *', 'Europe/Vienna').following(at('2025-10-26T00:59:57Z'), 60);
  expect(seconds).toEqual(Array.from({ length: 60 }, (_, index) => at('2025-10-26T00:59:58Z') + index * 1_000));
  // Half an hour only.
  expect(following('0 * * * *', 'Australia/Lord_Howe', '2025-04-05T13:30:00Z', 3)).toEqual([
    '2025-04-05T14:00:00Z',
    '2025-04-05T15:30:00Z',
    '2025-04-05T16:30:00Z',
  ]);
});

test.each([
  ['Europe/Berlin', '2025-03-29T20:00:00Z', '30 2 * * *'],
  ['Europe/Berlin', '2025-10-25T20:00:00Z', '30 2 * * *'],
  ['Europe/Berlin', '2025-10-25T20:00:00Z', '*/10 * * * *'],
  ['Australia/Lord_Howe', '2025-04-05T12:00:00Z', '15,45 * * * *'],
  ['America/New_York', '2025-03-09T04:00:00Z', '0 15 1-3 * * *'],
])('the last tick up to a moment is the one that counting forward finds: %s %s %s', (zone, from, cron) => {
  const ticks = new Ticks(cron, zone);
  const forward = ticks.following(at(from) - 2 * 86_400_000, 700);
  for (let ms = at(from); ms < at(from) + 12 * 3_600_000; ms += 7 * 60_000 + 1) {
    expect(ticks.upTo(ms), new Date(ms).toISOString()).toBe(forward.findLast((tick) => tick <= ms));
  }
  expect(ticks.upTo(forward[300] ?? NaN)).toBe(forward[300]);
});

test.each([
  ['61 * * * *', 'UTC'],
  ['* * * *', 'UTC'],
  ['* * * * * * *', 'UTC'],
  ['', 'UTC'],
  ['@reboot', 'UTC'],
  ['2027-01-23T00:00:00', 'UTC'],
  ['* * * * *', 'Nowhere/City'],
  ['* * * * *', '+02:00'],
  ['* * * * *', ''],
])('"%s" in "%s" is refused by name', (cron, zone) => {
  expect(() => new Ticks(cron, zone)).toThrow(expect.objectContaining({ code: 'CRON_INVALID' }) as Error);
});

test('a time that never comes is refused', () => {
  expect(() => new Ticks('0 0 30 2 *', 'UTC').after(0)).toThrow(
    expect.objectContaining({ code: 'CRON_INVALID' }) as Error,
  );
});

const hourly = new Ticks('0 * * * *', 'UTC');
const everySecond = new Ticks('* * * * * *', 'UTC');

test('a tick that is not late fires whatever the policy', () => {
  for (const catchUp of ['none', 'last', 'all'] as const) {
    expect(planFiring(hourly, at('2026-01-01T01:00:00Z'), at('2026-01-01T01:00:00Z') + IN_TIME_MS, catchUp)).toEqual({
      ticks: [at('2026-01-01T01:00:00Z')],
      missed: 0,
      next: at('2026-01-01T02:00:00Z'),
    });
  }
});

test('C40 after eight hours, none fires no missed tick, last the last one, all each of them', () => {
  const due = at('2026-01-01T01:00:00Z');
  const now = at('2026-01-01T08:30:00Z');
  const next = at('2026-01-01T09:00:00Z');
  expect(planFiring(hourly, due, now, 'none')).toEqual({ ticks: [], missed: 8, next });
  expect(planFiring(hourly, due, now, 'last')).toEqual({ ticks: [at('2026-01-01T08:00:00Z')], missed: 7, next });
  expect(planFiring(hourly, due, now, 'all')).toEqual({ ticks: hourly.following(due - 1, 8), missed: 0, next });
});

test('after a gap, what is in time fires besides, and then the last missed tick does not', () => {
  const due = at('2026-01-01T01:00:00Z');
  const now = at('2026-01-01T08:00:03Z');
  for (const catchUp of ['none', 'last'] as const) {
    expect(planFiring(hourly, due, now, catchUp)).toEqual({
      ticks: [at('2026-01-01T08:00:00Z')],
      missed: 7,
      next: at('2026-01-01T09:00:00Z'),
    });
  }
});

test('however long the gap, a plan is bounded, and the next one goes on where it ended', () => {
  const due = at('2026-01-01T00:00:00Z');
  const now = at('2027-01-01T00:00:00Z');
  const last = planFiring(everySecond, due, now, 'last');
  expect(last.missed).toBe(COUNTED_MISSES);
  expect(last.ticks).toEqual(everySecond.following(now - IN_TIME_MS - 1, 11));
  expect(last.next).toBe(now + 1_000);
  const all = planFiring(everySecond, due, now, 'all');
  expect(all.ticks).toEqual(everySecond.following(due - 1, FIRED_AT_ONCE));
  expect(all.next).toBe(due + FIRED_AT_ONCE * 1_000);
});
