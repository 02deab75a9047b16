import { type Verdict, verdict } from '../support/verdict.js';
import type { Evidence } from './campaign.js';
import type { LedgerEvent } from './ledger.js';
import { EVENT } from './journey.js';
import { keyOf } from './record.js';

/**
 * How much later than an execution's first sign of life a body of an earlier one may begin: the look at the lease and the
 * line in the ledger are two moments, between which a process may have to wait for its turn.
 */
const LATE_MS = 300;

type EventOf<What extends LedgerEvent['what']> = Extract<LedgerEvent, { readonly what: What }>;

export function judgeFailover(evidence: Evidence): readonly Verdict[] {
  return [
    substance(evidence),
    ends(evidence),
    acknowledged(evidence),
    outcomes(evidence),
    effects(evidence),
    reruns(evidence),
    fencing(evidence),
    told(evidence),
  ];
}

function of<What extends LedgerEvent['what']>({ ledger }: Evidence, what: What): readonly EventOf<What>[] {
  return ledger.filter((event): event is EventOf<What> => event.what === what);
}

/** What a failover campaign is about has happened. */
function substance(evidence: Evidence): Verdict {
  const { options } = evidence;
  const acknowledgements = evidence.ledger.filter(({ what }) =>
    ['started', 'recorded', 'sent', 'outcome'].includes(what),
  ).length;
  const unacknowledged = of(evidence, 'back').reduce((sum, event) => sum + event.unacknowledged, 0);
  const takeovers = of(evidence, 'body').filter(({ epoch }) => epoch > 1).length;
  const says =
    `${String(of(evidence, 'promoted').length)} failovers, ${String(acknowledgements)} acknowledgements, ` +
    `${String(unacknowledged)} transactions that only an old primary had, ${String(takeovers)} bodies after a takeover`;
  const isEnough =
    of(evidence, 'rejoined').length === options.rounds &&
    acknowledgements >= options.leastAcknowledgements &&
    // In a few rounds it may happen that every heartbeat comes to the new primary in time, and every commit to the standby.
    ((takeovers > 0 && unacknowledged > 0) || options.rounds < 3);
  return { judge: 'substance', is: isEnough ? 'green' : 'void', says };
}

function ends(evidence: Evidence): Verdict {
  const { statuses } = evidence.record;
  const faults = [...statuses]
    .filter(([, status]) => status !== 'SUCCESS')
    .map(([workflowId, status]) => `${workflowId} is ${status}`);
  return verdict('ends', faults, `${String(statuses.size)} workflows`);
}

/** Everything that somebody was told is there, as he was told. */
function acknowledged(evidence: Evidence): Verdict {
  const { record } = evidence;
  const faults: string[] = [];
  const expect = (found: string | undefined, told: unknown, what: string): void => {
    const text = JSON.stringify(told);
    if (found !== text) faults.push(`${what} was acknowledged as ${text}, and is ${found ?? 'not there'}`);
  };
  const started = of(evidence, 'started');
  for (const { workflowId, input } of started)
    expect(record.inputs.get(workflowId), [input], `the start of ${workflowId}`);
  const recorded = of(evidence, 'recorded');
  for (const { kind, workflowId, step, value } of recorded) {
    const what = `${step} of ${workflowId}`;
    if (kind === 'step') expect(record.results.get(keyOf(workflowId, step)), value, what);
    if (kind === 'event') expect(record.events.get(keyOf(workflowId, EVENT)), value, what);
    if (kind === 'message') expect(record.messages.get(workflowId)?.[0], value, what);
  }
  const sent = of(evidence, 'sent');
  for (const { workflowId, value } of sent) {
    const messages = record.messages.get(workflowId) ?? [];
    if (messages.length > 1) faults.push(`${workflowId} has its one message ${String(messages.length)} times`);
    expect(messages[0], value, `the message to ${workflowId}`);
  }
  const numbers = `${String(started.length)} starts, ${String(recorded.length)} results, events and messages received, ${String(sent.length)} messages sent`;
  return verdict('acknowledged', faults, numbers);
}

/** One outcome, the same for everybody, made of the recorded results. */
function outcomes(evidence: Evidence): Verdict {
  const { record } = evidence;
  const faults: string[] = [];
  const heard = of(evidence, 'outcome');
  for (const { who, workflowId, value } of heard) {
    const found = record.outcomes.get(workflowId);
    if (found !== JSON.stringify(value)) {
      faults.push(`${who} was told ${value} of ${workflowId}, whose outcome is ${found ?? 'not there'}`);
    }
  }
  for (const [workflowId, outcome] of record.outcomes) {
    const parts = ['first', 'effect', 'second'].map((step) => record.results.get(keyOf(workflowId, step)));
    const [first, effect, second] = parts.map((text) => String(JSON.parse(text ?? 'null')));
    const message = String(JSON.parse(record.messages.get(workflowId)?.[0] ?? 'null'));
    const made = JSON.stringify([first, effect, message, second].join(' '));
    if (outcome !== made) faults.push(`the outcome of ${workflowId} is ${outcome}, its results make ${made}`);
  }
  return verdict('outcomes', faults, `${String(heard.length)} times told, of ${String(record.outcomes.size)}`);
}

/** Exactly one effect, that of the run whose result is recorded. */
function effects(evidence: Evidence): Verdict {
  const { record } = evidence;
  const faults: string[] = [];
  for (const [workflowId, status] of record.statuses) {
    const runs = record.effects.get(workflowId) ?? [];
    const recorded = record.results.get(keyOf(workflowId, 'effect'));
    const isRight =
      recorded === undefined ? runs.length === 0 : runs.length === 1 && recorded === JSON.stringify(runs[0]);
    if (!isRight)
      faults.push(`${workflowId} (${status}) has the effects ${runs.join()}, recorded is ${recorded ?? 'none'}`);
  }
  return verdict('effects', faults, `${String(record.effects.size)} transactions`);
}

/** A body whose result was recorded does not run again. */
function reruns(evidence: Evidence): Verdict {
  const recordedAt = new Map<string, number>();
  const faults: string[] = [];
  let bodies = 0;
  for (const event of evidence.ledger) {
    if (event.what === 'recorded' && event.kind === 'step') {
      const key = keyOf(event.workflowId, event.step);
      if (!recordedAt.has(key)) recordedAt.set(key, event.at);
    }
    if (event.what !== 'body') continue;
    bodies += 1;
    const since = recordedAt.get(keyOf(event.workflowId, event.step));
    if (since !== undefined) {
      faults.push(
        `${event.who} ran ${event.step} of ${event.workflowId} (epoch ${String(event.epoch)}) ${String(Math.round(event.at - since))} ms after its result was recorded`,
      );
    }
  }
  return verdict('reruns', faults, `${String(bodies)} bodies`);
}

/** Who was replaced begins nothing any more. */
function fencing(evidence: Evidence): Verdict {
  const highest = new Map<string, EventOf<'body'>>();
  const faults: string[] = [];
  for (const body of of(evidence, 'body')) {
    const latest = highest.get(body.workflowId);
    if (latest === undefined || latest.epoch < body.epoch) highest.set(body.workflowId, body);
    else if (latest.epoch > body.epoch && body.at - latest.at > LATE_MS) {
      faults.push(
        `${body.who} began ${body.step} of ${body.workflowId} in epoch ${String(body.epoch)}, ` +
          `${String(Math.round(body.at - latest.at))} ms after ${latest.who} had in epoch ${String(latest.epoch)}`,
      );
    }
  }
  return verdict('fencing', faults, `${String(highest.size)} workflows`);
}

/** Nobody is told that something failed, or is not there. */
function told(evidence: Evidence): Verdict {
  const wrong = of(evidence, 'wrong').map(({ who, workflowId, error }) => `${who} was told of ${workflowId}: ${error}`);
  return verdict('told', wrong, `${String(wrong.length)} errors`);
}
