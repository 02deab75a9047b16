import type { Evidence } from '../campaign.js';
import type { Body, ProcessLife, Story } from '../replay.js';
import { ms, spread, verdict, type Verdict } from '../../support/verdict.js';

/**
 * What a killed executor ran goes on elsewhere within the lease and the slack. Where others are killed or stopped before it
 * does, the time counts from the last of that: the one that had taken it may be among them. Recovery keeps to the limit of
 * each executor, so the queues that have one wait for room, and are not judged here.
 */
export function judgeRecovery({ plan, options }: Evidence, story: Story): Verdict {
  const allowedMs = options.leaseMs + options.recoverySlackMs;
  const limited = new Set(
    plan.queues.filter((queue) => queue.executorConcurrency !== undefined).map(({ name }) => name),
  );
  const disturbances = disturbancesOf(story);
  const nextBodies = bodiesByWorkflow(story.bodies);
  const undisturbed: number[] = [];
  const faults: string[] = [];
  let judged = 0;
  for (const body of story.bodies) {
    const killed = story.processes.get(body.pid)?.killed;
    if (body.how !== 'killed' || killed === undefined || body.superseded !== undefined || limited.has(body.queue))
      continue;
    if (killed.at >= story.healedAt) continue;
    judged += 1;
    const next = nextBodies.get(body.workflowId)?.find(({ began }) => began > killed.place);
    if (next === undefined) {
      faults.push(`"${body.workflowId}" was not taken over from process ${String(body.pid)}`);
      continue;
    }
    const last = disturbances.filter((at) => at > killed.at && at < next.beganAt).at(-1);
    if (last === undefined) undisturbed.push(next.beganAt - killed.at);
    const tookMs = next.beganAt - (last ?? killed.at);
    if (tookMs > allowedMs) faults.push(`"${body.workflowId}" went on after ${ms(tookMs)}`);
  }
  const numbers =
    `${String(judged)} bodies of killed executors, allowed ${ms(allowedMs)}; of the ${String(undisturbed.length)} with no ` +
    `other kill or pause meanwhile: ${spread(undisturbed)}`;
  if (judged === 0 && faults.length === 0) return { judge: 'recovery', is: 'void', says: numbers };
  return verdict('recovery', faults, numbers);
}

function disturbancesOf({ processes }: Story): readonly number[] {
  return [...processes.values()]
    .flatMap(({ stops, killed }) => [...stops.map(({ at }) => at), ...(killed === undefined ? [] : [killed.at])])
    .sort((a, b) => a - b);
}

function bodiesByWorkflow(bodies: readonly Body[]): ReadonlyMap<string, readonly Body[]> {
  const all = new Map<string, Body[]>();
  for (const body of bodies) {
    const group = all.get(body.workflowId);
    if (group === undefined) all.set(body.workflowId, [body]);
    else group.push(body);
  }
  return all;
}

/** How long after a process went on its heartbeat may still be on its way, in leases. */
const SUSPECT_LEASES = 1;

/** Share of a lease: who showed nothing for that long may have missed its heartbeats. */
const STARVED_LEASES = 0.5;

/**
 * Nobody's work is taken over who was neither killed nor stopped, nor starved (on a machine with more to do than it can, a
 * process may show nothing for so long that its heartbeats are late as well); and who was stopped begins no body of a workflow that has
 * gone on elsewhere. One for each pause cannot be helped: the process may have been stopped between the look at its lease
 * and the body.
 */
export function judgeFencing({ options }: Evidence, story: Story): Verdict {
  const faults: string[] = [];
  const late = new Map<number, number>();
  const latest = new Map<string, Body>();
  let takeovers = 0;
  let starved = 0;
  const signs = signsOf(story);
  for (const body of story.bodies) {
    const before = latest.get(body.workflowId);
    if (before === undefined || body.epoch >= before.epoch) latest.set(body.workflowId, body);
    if (before === undefined || before.epoch === body.epoch) continue;
    if (body.epoch < before.epoch) {
      late.set(body.pid, (late.get(body.pid) ?? 0) + 1);
      continue;
    }
    takeovers += 1;
    const life = story.processes.get(before.pid);
    const wasUnderWay = before.ended === undefined || before.ended > body.began || before.how === 'killed';
    if (!wasUnderWay || life === undefined || wasDisturbed(life, body, options.leaseMs)) continue;
    if (wasStarved(life, signs.get(before.pid) ?? [], body.beganAt, options.leaseMs)) starved += 1;
    else {
      faults.push(`"${body.workflowId}" was taken from process ${String(before.pid)}, which was well`);
    }
  }
  for (const [pid, count] of late) {
    const stops = story.processes.get(pid)?.stops.length ?? 0;
    if (count > stops) {
      faults.push(`process ${String(pid)} began ${String(count)} bodies of workflows that had gone on elsewhere`);
    }
  }
  const lateBodies = [...late.values()].reduce((sum, count) => sum + count, 0);
  return verdict(
    'fencing',
    faults,
    `${String(takeovers)} executions after a first one, ${String(lateBodies)} bodies begun too late, ${String(starved)} taken from starved executors`,
  );
}

/** When each process wrote into the ledger. */
function signsOf({ events }: Story): ReadonlyMap<number, readonly number[]> {
  const signs = new Map<number, number[]>();
  for (const { what, pid, at } of events) {
    if (what !== 'begin' && what !== 'end') continue;
    const times = signs.get(pid);
    if (times === undefined) signs.set(pid, [at]);
    else times.push(at);
  }
  return signs;
}

function wasStarved(life: ProcessLife, signs: readonly number[], at: number, leaseMs: number): boolean {
  const from = Math.max(life.launchedAt, at - 2 * leaseMs);
  const recent = [from, ...signs.filter((sign) => sign > from && sign < at), at];
  return recent.some((sign, index) => sign - (recent[index - 1] ?? sign) > leaseMs * STARVED_LEASES);
}

function wasDisturbed(life: ProcessLife, by: Body, leaseMs: number): boolean {
  if (life.crashed || (life.killed !== undefined && life.killed.place < by.began)) return true;
  return life.stops.some(
    (stop) => stop.place < by.began && (stop.until ?? Infinity) + SUSPECT_LEASES * leaseMs > by.beganAt,
  );
}
