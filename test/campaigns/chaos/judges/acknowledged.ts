import { verdict, type Verdict } from '../../support/verdict.js';
import { groupBy, type Story } from './story.js';

/** Every start that was acknowledged is there, with an input that somebody gave. */
export function judgeStarts({ calls, deleted, record }: Story): Verdict {
  const inputs = new Map(record.inputs.map(({ workflow_id, input }) => [workflow_id, input]));
  const starts = calls.filter(({ kind }) => kind === 'start' || kind === 'enqueue');
  const given = groupBy(starts, ({ workflowId }) => workflowId);
  const faults: string[] = [];
  for (const { workflowId, how } of starts) {
    const input = inputs.get(workflowId);
    if (input === undefined) {
      if (how === 'ok' && !deleted.has(workflowId)) faults.push(`"${workflowId}" was acknowledged and is not there`);
    } else if (!(given.get(workflowId) ?? []).some(({ value }) => value === input)) {
      faults.push(`"${workflowId}" has the input ${input}, which nobody gave`);
    }
  }
  for (const { kind, workflowId, how } of calls) {
    if (kind !== 'fork' || how !== 'ok') continue;
    const fork = `${workflowId} fork`;
    if (!inputs.has(fork) && !deleted.has(fork)) faults.push(`"${fork}" was acknowledged and is not there`);
  }
  const acknowledged = starts.filter(({ how }) => how === 'ok').length;
  const unknown = starts.filter(({ how }) => how === 'unknown').length;
  return verdict('starts', faults, `${String(acknowledged)} starts acknowledged, ${String(unknown)} unknown`);
}

/** Every result that reached a workflow's code is on record, byte by byte, and is the only one that its code was ever given. */
export function judgeCheckpoints(story: Story): Verdict {
  const { record, deleted } = story;
  const steps = new Map(record.steps.map((step) => [`${step.workflow_id} ${String(step.seq)}`, step]));
  const faults: string[] = [];
  const acknowledged = story.of('step');
  for (const { workflowId, seq, step: name, value } of acknowledged) {
    if (deleted.has(workflowId)) continue;
    const step = steps.get(`${workflowId} ${String(seq)}`);
    if (step === undefined) faults.push(`"${name}" of "${workflowId}" was acknowledged and is not on record`);
    else if (value !== undefined && step.output !== value) {
      faults.push(`"${name}" of "${workflowId}" was acknowledged as ${value}, and is ${String(step.output)}`);
    }
  }
  return verdict('checkpoints', faults, `${String(acknowledged.length)} results acknowledged`);
}

/** How a handle tells of a workflow that ended like this. */
const CODES: Readonly<Record<string, string>> = {
  CANCELLED: 'WORKFLOW_CANCELLED',
  DEAD_LETTER: 'MAX_ATTEMPTS_EXCEEDED',
};

/** Codes of handles that were told nothing. */
const NOT_TOLD: ReadonlySet<string> = new Set(['CLOSED', 'STORE_CLOSED']);

/** Whoever was told an outcome was told the one that is on record, byte by byte; a fresh process, too. */
export function judgeOutcomes(story: Story): Verdict {
  const { record, deleted, fresh } = story;
  const outcomes = new Map(record.outcomes.map((outcome) => [outcome.workflow_id, outcome]));
  const faults: string[] = [];
  const told = story.of('outcome').filter(({ code }) => code === undefined || !NOT_TOLD.has(code));
  const observers = new Set(told.map(({ who }) => who));
  for (const { workflowId, value, code, who } of told) {
    const outcome = outcomes.get(workflowId);
    if (outcome === undefined) {
      if (!deleted.has(workflowId)) {
        faults.push(`${who} was told ${code ?? String(value)} of "${workflowId}", which has no outcome`);
      }
      continue;
    }
    const isRight =
      value !== undefined
        ? outcome.output === value
        : outcome.status === 'ERROR'
          ? (outcome.error ?? '').includes(`"${String(code)}"`)
          : CODES[outcome.status] === code;
    if (!isRight) {
      const recorded = outcome.output ?? `${outcome.status} ${String(outcome.error)}`;
      faults.push(`${who} was told ${code ?? String(value)} of "${workflowId}", on record is ${recorded}`);
    }
  }
  for (const [workflowId, value] of fresh) {
    if (outcomes.get(workflowId)?.output !== value) faults.push(`a fresh handle of "${workflowId}" returns ${value}`);
  }
  return verdict(
    'outcomes',
    faults,
    `${String(told.length)} times told by ${String(observers.size)} processes, ${String(fresh.size)} times by a fresh one`,
  );
}

/** Workflows of the campaign never fail, and are never told that one they wait for is gone, unless somebody interfered. */
export function judgeFailures({ record, interfered }: Story): Verdict {
  const faults = record.outcomes
    .filter(({ status, workflow_id }) => status !== 'SUCCESS' && !interfered.has(workflow_id))
    .map(({ workflow_id, status, error }) => `"${workflow_id}" ended with ${status}: ${String(error).slice(0, 200)}`);
  const failed = record.outcomes.filter(({ status }) => status !== 'SUCCESS').length;
  return verdict(
    'failures',
    faults,
    `${String(record.outcomes.length)} ended, ${String(failed)} otherwise than well, ${String(interfered.size)} interfered with`,
  );
}

/** What was sent is received once, in the order in which it was sent; what was acknowledged is there. */
export function judgeMessages({ calls, record, interfered }: Story): Verdict {
  const faults: string[] = [];
  const sends = calls.filter(({ kind }) => kind === 'send');
  const rows = groupBy(record.messages, ({ workflow_id }) => workflow_id);
  for (const { workflowId, value, how } of sends) {
    if (interfered.has(workflowId)) continue;
    const there = (rows.get(workflowId) ?? []).filter(({ payload }) => payload === value).length;
    if (there > 1 || (there === 0 && how === 'ok')) {
      faults.push(`"${String(value)}" is there ${String(there)} times`);
    }
  }
  const sentTo = groupBy(sends, ({ workflowId }) => workflowId);
  for (const { workflow_id: workflowId, output } of record.outcomes) {
    if (output === null || !sentTo.has(workflowId)) continue;
    const sent = [...new Set((sentTo.get(workflowId) ?? []).map(({ value }) => value))];
    if (output !== `[${sent.join(',')}]`) faults.push(`"${workflowId}" received ${output}`);
  }
  return verdict('messages', faults, `${String(sends.length)} sends to ${String(sentTo.size)} workflows`);
}

/** Events that were set are there; events of the outbox are delivered, each under one ID, and nothing else is. */
export function judgeEvents(story: Story): Verdict {
  const { record, deleted } = story;
  const faults: string[] = [];
  const values = new Set(record.events.map(({ workflow_id, value }) => `${workflow_id} ${value}`));
  const editions: Readonly<Record<string, number>> = { 'first news': 1, 'second news': 2 };
  const delivered = groupBy(story.of('delivered'), ({ workflowId }) => workflowId);
  let events = 0;
  let posts = 0;
  for (const { workflowId, step: name } of story.of('step')) {
    if (deleted.has(workflowId)) continue;
    const edition = editions[name];
    if (edition !== undefined) {
      events += 1;
      if (!values.has(`${workflowId} "${workflowId} ${String(edition)}"`))
        faults.push(`"${name}" of "${workflowId}" is lost`);
    }
    if (name === 'post') {
      posts += 1;
      if (!delivered.has(workflowId)) faults.push(`the event of "${workflowId}" was never delivered`);
    }
  }
  const recorded = new Map(
    record.steps.filter(({ name }) => name === 'before').map(({ workflow_id, output }) => [workflow_id, output]),
  );
  for (const [workflowId, deliveries] of delivered) {
    if (new Set(deliveries.map(({ eventId }) => eventId)).size > 1) {
      faults.push(`the event of "${workflowId}" was delivered under several IDs`);
    }
    const wrong = deliveries.find(({ payload }) => JSON.stringify(payload) !== recorded.get(workflowId));
    if (wrong !== undefined && !deleted.has(workflowId)) {
      faults.push(`"${wrong.payload}" of "${workflowId}" was delivered, which is not on record`);
    }
  }
  if (record.undelivered > 0) faults.push(`${String(record.undelivered)} events of the outbox are left`);
  return verdict('events', faults, `${String(events)} events set, ${String(posts)} added to the outbox`);
}
