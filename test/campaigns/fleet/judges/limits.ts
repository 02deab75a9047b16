import type { Evidence } from '../campaign.js';
import type { Body, Story } from '../replay.js';
import { verdict, type Verdict } from '../../support/verdict.js';

/** Of a lease: what was stopped for less still had it when it went on, as the last heartbeat is at most that old. */
const SURELY_HELD = 2 / 3;

/**
 * Live bodies never exceed a limit: of the queue, of each key, of each executor.
 *
 * A slot belongs to a workflow's row, so of each workflow at most one body counts: the one that began last. One that still
 * runs in an executor that lost its lease is a zombie's from the moment in which the new owner's body begins. And where a
 * process was stopped for so long that its lease may have lapsed, its bodies count no more against its own limit once it goes
 * on: their workflows may be others' by then, while it does not know yet and rightly takes new ones. They go on counting
 * against the limits of queue and key.
 */
export function judgeLimits({ plan, options }: Evidence, story: Story): Verdict {
  const limits = new Map(plan.queues.map((queue) => [queue.name, queue]));
  const counts = new Map<string, { live: Set<string>; most: number; limit: number }>();
  const faults: string[] = [];
  const byRun = new Map(story.bodies.map((body) => [body.run, body]));
  const current = new Map<string, Body>();

  const groupsOf = ({ queue, key, pid }: Body): [kind: string, name: string, limit: number | undefined][] => {
    const limit = limits.get(queue);
    return [
      ['queue', queue, limit?.concurrency],
      ['key', `${queue}, ${key}`, limit?.keyConcurrency],
      ['executor', `${queue}, process ${String(pid)}`, limit?.executorConcurrency],
    ];
  };
  const leave = (body: Body, kinds = ['queue', 'key', 'executor']): void => {
    for (const [kind, name] of groupsOf(body)) {
      if (kinds.includes(kind)) counts.get(`${kind} ${name}`)?.live.delete(body.run);
    }
  };
  const enter = (body: Body): void => {
    for (const [kind, name, limit] of groupsOf(body)) {
      if (limit === undefined) continue;
      const group = `${kind} ${name}`;
      const count = counts.get(group) ?? { live: new Set(), most: 0, limit };
      counts.set(group, count);
      count.live.add(body.run);
      count.most = Math.max(count.most, count.live.size);
      if (count.live.size > limit) {
        faults.push(
          `${group}: ${String(count.live.size)} live, limit ${String(limit)}, at place ${String(body.began)}`,
        );
      }
    }
  };

  for (const event of story.events) {
    if (event.what === 'begin') {
      const body = byRun.get(event.run);
      if (body?.queue === undefined || body.superseded === body.began) continue;
      const before = current.get(body.workflowId);
      if (before !== undefined) leave(before);
      current.set(body.workflowId, body);
      enter(body);
    } else if (event.what === 'end') {
      const body = byRun.get(event.run);
      if (body !== undefined) leave(body);
    } else if (event.what === 'dead' || event.what === 'crashed') {
      for (const body of current.values()) if (body.pid === event.pid) leave(body);
    } else if (event.what === 'continued') {
      const stop = story.processes.get(event.pid)?.stops.find(({ until }) => until === event.at);
      if (stop === undefined || event.at - stop.at < options.leaseMs * SURELY_HELD) continue;
      for (const body of current.values()) if (body.pid === event.pid) leave(body, ['executor']);
    }
  }
  return sum(counts, faults);
}

function sum(
  counts: ReadonlyMap<string, { readonly most: number; readonly limit: number }>,
  faults: readonly string[],
): Verdict {
  const kinds = ['queue', 'key', 'executor'].map((kind) => {
    const groups = [...counts].filter(([group]) => group.startsWith(`${kind} `));
    const reached = groups.filter(([, { most, limit }]) => most >= limit).length;
    return { kind, groups: groups.length, reached };
  });
  const numbers = kinds
    .map(({ kind, groups, reached }) => `${kind}: ${String(reached)} of ${String(groups)} limits reached`)
    .join(', ');
  if (faults.length === 0 && kinds.some(({ reached }) => reached === 0)) {
    return { judge: 'limits', is: 'void', says: `${numbers}: a limit that is never reached is not tested` };
  }
  return verdict('limits', faults, faults.length > 0 ? numbers : `${numbers}, none exceeded`);
}
