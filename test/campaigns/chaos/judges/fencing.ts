import { ms, spread, verdict, type Verdict } from '../../support/verdict.js';
import { groupBy, type Story } from './story.js';

/** Steps that are begun at once: the parallel ones of `steps`. */
const AT_ONCE: ReadonlySet<string> = new Set(['x', 'y', 'z']);

/**
 * Who has lost a workflow begins no body of it. One that did not know yet begins what it was about to, once: it was stopped between
 * the look at its lease and the body, or taken for dead while it was well. Its next write tells it.
 */
export function judgeFencing(story: Story): Verdict {
  const faults: string[] = [];
  const latest = new Map<string, number>();
  const lost = new Set<string>();
  const late = new Map<string, Set<string>>();
  let lateBodies = 0;
  for (const entry of story.entries) {
    if (entry.what === 'lost') lost.add(`${entry.who} ${entry.workflowId} ${String(entry.epoch)}`);
    if (entry.what !== 'body') continue;
    const { who, workflowId, epoch, step } = entry;
    const execution = `${who} ${workflowId} ${String(epoch)}`;
    if (lost.has(execution)) faults.push(`${execution} began "${step}" although it knew that it had lost it`);
    if (epoch >= (latest.get(workflowId) ?? 0)) latest.set(workflowId, epoch);
    else {
      lateBodies += 1;
      const calls = late.get(execution) ?? new Set<string>();
      calls.add(AT_ONCE.has(step) ? 'at once' : step);
      late.set(execution, calls);
      if (calls.size > 1)
        faults.push(`${execution} began ${[...calls].join(', ')} after the beginning of a later epoch`);
    }
  }
  return verdict('fencing', faults, `${String(lateBodies)} bodies begun too late, by executions that could not know`);
}

/** How long after the end of a disturbance a process may need to find its feet, in milliseconds. */
const RECOVERY_MS = 2_000;

/** A handle returns soon after the outcome was recorded, also in a process that has lost the workflow. Not while it is disturbed. */
export function judgeHandles(story: Story): Verdict {
  const { record, options } = story;
  const recorded = new Map(record.outcomes.map(({ workflow_id, at }) => [workflow_id, at]));
  const troubles = troublesOf(story);
  const settledAt = story.phaseAt('settled');
  const faults: string[] = [];
  const took: number[] = [];
  const parked: number[] = [];
  const lost = new Set(
    story
      .of('lost')
      .filter(({ workflowId, epoch }) => story.taken.has(`${workflowId} ${String(epoch)}`))
      .map(({ who, workflowId }) => `${who} ${workflowId}`),
  );
  const waiting = waitingSince(story);
  for (const { who, workflowId, at, value } of story.of('outcome')) {
    const recordedAt = recorded.get(workflowId);
    if (value === undefined || recordedAt === undefined || at >= settledAt) continue;
    const since = Math.max(recordedAt, waiting.get(`${who} ${workflowId}`) ?? 0);
    const isTroubled = (troubles.get(who) ?? []).some(([from, to]) => from < at && to + RECOVERY_MS > since);
    if (isTroubled) continue;
    took.push(at - since);
    if (lost.has(`${who} ${workflowId}`)) parked.push(at - since);
    if (at - since > options.handleMs) faults.push(`${who} heard of "${workflowId}" ${ms(at - since)} after its end`);
  }
  return verdict(
    'handles',
    faults,
    `${String(took.length)} in processes that were well: ${spread(took)}; of those that had lost theirs, ${String(parked.length)}: ${spread(parked)}`,
  );
}

/** When each process was told last that a workflow is started, by `process workflow`: it waits from then on. */
function waitingSince(story: Story): ReadonlyMap<string, number> {
  const calls = new Map(story.of('invoke').map(({ op, workflowId }) => [op, workflowId]));
  return new Map(story.of('ok').map(({ op, who, at }) => [`${who} ${String(calls.get(op))}`, at]));
}

/** Times in which each process could not do its part. */
function troublesOf(story: Story): ReadonlyMap<string, readonly (readonly [from: number, to: number])[]> {
  const troubles = new Map<string, [number, number][]>();
  for (const [process, events] of groupBy(story.of('process'), ({ process }) => process)) {
    const times: [number, number][] = [];
    const open: number[] = [];
    for (const { happened, at } of events) {
      if (happened === 'stopped' || happened === 'disturbed') open.push(at);
      else if (happened === 'continued' || happened === 'undisturbed') times.push([open.pop() ?? 0, at]);
    }
    troubles.set(process, [...times, ...open.map((from): [number, number] => [from, Infinity])]);
  }
  return troubles;
}
