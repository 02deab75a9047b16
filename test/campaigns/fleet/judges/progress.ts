import type { Evidence } from '../campaign.js';
import type { ProcessLife, Story } from '../replay.js';
import { ms, spread, verdict, type Verdict } from '../../support/verdict.js';

/** No executor ends by itself, and none stands still while it is neither dead nor stopped: its pulses' bodies go on beginning. */
export function judgeProgress({ options }: Evidence, story: Story): Verdict {
  const faults: string[] = [];
  const gaps: number[] = [];
  const pulses = new Map<number, number[]>();
  for (const { workflowId, pid, beganAt } of story.bodies) {
    if (!workflowId.startsWith(`pulse ${String(pid)} `)) continue;
    const times = pulses.get(pid);
    if (times === undefined) pulses.set(pid, [beganAt]);
    else times.push(beganAt);
  }
  for (const life of story.processes.values()) {
    if (life.crashed) faults.push(`process ${String(life.pid)} ended by itself`);
    const times = pulses.get(life.pid) ?? [];
    for (const [from, to] of wellTimes(life, story.healedAt)) {
      const inside = [from, ...times.filter((at) => at > from && at < to), to];
      const longest = Math.max(...inside.slice(1).map((at, index) => at - (inside[index] ?? at)));
      gaps.push(longest);
      if (longest > options.stallMs) {
        faults.push(`${life.executorId} (process ${String(life.pid)}) stood still for ${ms(longest)}`);
      }
    }
  }
  return verdict(
    'progress',
    faults,
    `longest gap of each of ${String(gaps.length)} undisturbed times of an executor, allowed ${ms(options.stallMs)}: ${spread(gaps)}`,
  );
}

function wellTimes({ launchedAt, stops, killed }: ProcessLife, healedAt: number): [from: number, to: number][] {
  const end = Math.min(killed?.at ?? Infinity, healedAt);
  const times: [number, number][] = [];
  let from = launchedAt;
  for (const { at, until } of stops) {
    times.push([from, at]);
    from = until ?? Infinity;
  }
  times.push([from, end]);
  return times.filter(([begin, to]) => begin < to);
}
