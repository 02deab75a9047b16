import type { NextRun, WriteAnswer } from '../store.js';
import type { ProtocolCall } from './protocol-call.js';

/**
 * How the end of a run is said to the protocol. It travels like every other write, behind those that the execution has sent
 * before: what a run still records is on record, and acknowledged, when the run ends.
 */
export function continueCall({ input, firstSeq, unreceived }: NextRun): ProtocolCall<WriteAnswer> {
  return {
    functionName: 'continue_workflow',
    types: ['text', 'int4', 'text'],
    values: [input, firstSeq, `{${unreceived.join(',')}}`],
    seq: undefined,
    answerOf: ({ answer }) => (answer === null ? { kind: 'written' } : undefined),
  };
}
