import type { UnknownRecord, WriteAnswer } from '../store.js';
import type { ProtocolCall } from './protocol-call.js';

/** How it is said to the protocol that nobody knows what became of a step's body. */
export function unknownCall({ seq, name, attempts }: UnknownRecord): ProtocolCall<WriteAnswer> {
  return {
    functionName: 'mark_unknown',
    types: ['int4', 'text', 'int4'],
    values: [seq, name, attempts],
    seq,
    answerOf: ({ answer }) => (answer === null ? { kind: 'written' } : undefined),
  };
}
