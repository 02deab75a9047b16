import type { EventToAdd } from '../event-to-add.js';
import type { StepRecord, WriteAnswer } from '../store.js';
import type { ProtocolCall } from './protocol-call.js';

/** A result that is recorded together with events. Only results have any: what failed tells the outside world nothing. */
export function recordWithEventsCall(step: StepRecord, events: readonly EventToAdd[]): ProtocolCall<WriteAnswer> {
  const { seq, name, kind, output, attempts, attemptErrors, elapsedMs } = step;
  return {
    functionName: 'record_with_events',
    types: ['int4', 'text', 'text', 'text', 'int4', 'text', 'int4', 'text'],
    values: [seq, name, kind, output, attempts, attemptErrors, elapsedMs, JSON.stringify(events)],
    seq,
    answerOf: ({ answer }) => (answer === null ? { kind: 'written' } : undefined),
  };
}
