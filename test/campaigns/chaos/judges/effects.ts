import { verdict, type Verdict } from '../../support/verdict.js';
import { QUEUE } from '../traffic.js';
import { bodyIn, groupBy, type Of, type Story } from './story.js';

/** A transaction that is on record took effect once; one that is not took none. */
export function judgeTransactions({ record, deleted }: Story): Verdict {
  const faults: string[] = [];
  const payments = groupBy(record.payments, ({ workflow_id, step }) => `${workflow_id} ${step}`);
  let transactions = 0;
  const recorded = new Set<string>();
  for (const { workflow_id: workflowId, name, kind, output } of record.steps) {
    if (kind !== 'transaction' || output === null) continue;
    transactions += 1;
    const place = `${workflowId} ${name}`;
    recorded.add(place);
    const [payment, ...others] = payments.get(place) ?? [];
    if (payment === undefined || others.length > 0) {
      faults.push(`"${name}" of "${workflowId}" took effect ${String((payments.get(place) ?? []).length)} times`);
    } else if (bodyIn(output)?.run !== payment.run) faults.push(`"${name}" of "${workflowId}" is another run's`);
  }
  for (const [place, rows] of payments) {
    if (!recorded.has(place) && !deleted.has(rows[0]?.workflow_id ?? ''))
      faults.push(`"${place}" took effect without a record`);
  }
  if (record.cents !== record.payments.length) {
    faults.push(`${String(record.payments.length)} payments, and ${String(record.cents)} cents`);
  }
  return verdict('transactions', faults, `${String(transactions)} transactions`);
}

/**
 * Each recorded step had its effect at least once, and at most once in each epoch up to the one that recorded it: once more for
 * each takeover. A lost acknowledgement lets no body run again. The key is the same each time.
 */
export function judgeEffects(story: Story): Verdict {
  const { record, deleted } = story;
  const faults: string[] = [];
  const bodies = groupBy(story.of('body'), ({ workflowId, step }) => `${workflowId} ${step}`);
  const recorded = new Map(record.steps.map((step) => [`${step.workflow_id} ${step.name}`, step]));
  let repeated = 0;
  for (const [place, runs] of bodies) {
    if (new Set(runs.map(({ key }) => key)).size > 1) faults.push(`"${place}" has several idempotency keys`);
    repeated += runs.length - 1;
    const again = [...groupBy(runs, ({ epoch }) => epoch)].find(([, inEpoch]) => inEpoch.length > 1);
    if (again !== undefined)
      faults.push(`"${place}" ran ${String(again[1].length)} times in epoch ${String(again[0])}`);
    const step = recorded.get(place);
    const later = runs.find(({ epoch }) => step !== undefined && step.epoch > 0 && epoch > step.epoch);
    if (later !== undefined) faults.push(`"${place}" ran in epoch ${String(later.epoch)}, after it was recorded`);
  }
  let steps = 0;
  for (const { workflow_id: workflowId, name, kind, output } of record.steps) {
    if (kind !== 'step' || deleted.has(workflowId)) continue;
    steps += 1;
    const run = bodyIn(output)?.run;
    if (!(bodies.get(`${workflowId} ${name}`) ?? []).some((body) => body.run === run)) {
      faults.push(`"${name}" of "${workflowId}" has a result that no body gave`);
    }
  }
  return verdict('effects', faults, `${String(steps)} steps, ${String(repeated)} bodies run again`);
}

/** Of the queue, and of each key, never more bodies are live than its limit. What counts is the body that began last of a workflow. */
export function judgeLimits(story: Story): Verdict {
  const { entries, interfered } = story;
  const faults: string[] = [];
  const live = new Map<string, Of<'body'>>();
  const most = { queue: 0, key: 0 };
  for (const entry of entries) {
    if (entry.what === 'body' && entry.queue !== undefined && !interfered.has(entry.workflowId)) {
      live.set(entry.workflowId, entry);
      const inKey = [...live.values()].filter(({ queue }) => queue === entry.queue).length;
      most.queue = Math.max(most.queue, live.size);
      most.key = Math.max(most.key, inKey);
      if (live.size > QUEUE.concurrency) faults.push(`${String(live.size)} bodies of the queue are live`);
      if (inKey > QUEUE.keyConcurrency) faults.push(`${String(inKey)} bodies of ${entry.queue} are live`);
    } else if (entry.what === 'body-end') {
      for (const [workflowId, { run }] of live) if (run === entry.run) live.delete(workflowId);
    } else if (entry.what === 'process' && (entry.happened === 'dead' || entry.happened === 'crashed')) {
      for (const [workflowId, { who }] of live) if (who === entry.process) live.delete(workflowId);
    }
  }
  return verdict(
    'limits',
    faults,
    `at most ${String(most.queue)} of ${String(QUEUE.concurrency)} bodies of the queue live, ${String(most.key)} of ${String(QUEUE.keyConcurrency)} of a key`,
  );
}

/** The ledger's clock and the database's are of one machine, read in different ways. */
const CLOCKS_MS = 5;

/** No sleep ends before its time, by the database's clock and by the ledger's. */
export function judgeTimers(story: Story): Verdict {
  const { record } = story;
  const faults: string[] = [];
  const awake = groupBy(story.of('awake'), ({ workflowId, seq }) => `${workflowId} ${String(seq)}`);
  const steps = new Map(record.steps.map((step) => [`${step.workflow_id} ${String(step.seq)}`, step]));
  const late: number[] = [];
  for (const { workflow_id: workflowId, seq, wake_at, at } of record.sleeps) {
    const place = `${workflowId} ${String(seq)}`;
    const [first] = awake.get(place) ?? [];
    const step = steps.get(place);
    if (step !== undefined && step.at < wake_at) faults.push(`sleep ${place} is on record too early`);
    if (first === undefined) continue;
    late.push(first.at - wake_at);
    if (first.at < wake_at - CLOCKS_MS)
      faults.push(`sleep ${place} was over ${String(wake_at - first.at)} ms too early`);
    if (wake_at - at < first.ms - 1) faults.push(`sleep ${place} was to take ${String(wake_at - at)} ms`);
  }
  return verdict('timers', faults, `${String(late.length)} sleeps`);
}
