import type { EventRecord, ReceiveAnswer, ReceiveRecord, SendRecord, SendRecordAnswer, WriteAnswer } from '../store.js';
import type { ProtocolCall } from './protocol-call.js';

// How what executions do with messages and events is said to the functions of the protocol.

export function receiveCall({ seq, topic, otherwise, elapsedMs }: ReceiveRecord): ProtocolCall<ReceiveAnswer> {
  return {
    functionName: 'consume_message',
    types: ['int4', 'text', 'text', 'int4'],
    values: [seq, topic, otherwise, elapsedMs],
    seq,
    answerOf: ({ answer, reply }) => {
      if (answer === 'empty') return { kind: 'empty' };
      return answer === null ? { kind: 'received', payload: reply ?? '' } : undefined;
    },
  };
}

export function sendCall(record: SendRecord): ProtocolCall<SendRecordAnswer> {
  const { seq, name, receiver, topic, payload, idempotencyKey, output, elapsedMs } = record;
  return {
    functionName: 'record_send',
    types: ['int4', 'text', 'text', 'text', 'text', 'text', 'text', 'int4'],
    values: [seq, name, receiver, topic, payload, idempotencyKey, output, elapsedMs],
    seq,
    answerOf: ({ answer, found_detail: detail }) => {
      if (answer === 'no_receiver') return { kind: 'no-receiver' };
      if (answer === 'receiver_ended') return { kind: 'receiver-ended', status: detail ?? '' };
      return answer === null ? { kind: 'written' } : undefined;
    },
  };
}

export function eventCall({ seq, key, value, output, elapsedMs }: EventRecord): ProtocolCall<WriteAnswer> {
  return {
    functionName: 'record_event',
    types: ['int4', 'text', 'text', 'text', 'int4'],
    values: [seq, key, value, output, elapsedMs],
    seq,
    answerOf: ({ answer }) => (answer === null ? { kind: 'written' } : undefined),
  };
}
