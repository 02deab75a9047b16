import type {
  MessageTopic,
  ReceiveAnswer,
  ReceiveRecord,
  Refused,
  SendRecord,
  SendRecordAnswer,
  SendRefusal,
} from '../store.js';
import type { OutsideMessage } from '../message-store.js';
import { isMessageId, isName, refusal } from './constraints.js';
import type { MemoryDatabase } from './memory-database.js';
import { owned, unwritten, usedTwice, written, type OwnershipCheck, type Tried } from './ownership-check.js';
import { addResult, refusedResult } from './record-result.js';
import { isTerminal, type MessageRow, type Workflow } from './tables.js';
import { wakeUp } from './wake-ups.js';

export interface IdentifiedMessage extends Omit<OutsideMessage, 'idempotencyKey'> {
  readonly messageId: string;
}

/** Puts a message into a workflow's box; see send_items. Undefined: it is there. */
export function sendMessage(
  db: MemoryDatabase,
  { workflowId, messageId, topic, payload }: IdentifiedMessage,
  sender: string | null,
): SendRefusal | Refused | undefined {
  const receiver = db.workflows.get(workflowId);
  if (receiver?.messages.has(messageId) === true) return undefined;
  if (receiver === undefined) return { kind: 'no-receiver' };
  if (isTerminal(receiver.status)) return { kind: 'receiver-ended', status: receiver.status };
  if (!isMessageId(messageId)) return refusal('message_id_length');
  if (!isName(topic)) return refusal('topic_length');
  receiver.messages.set(messageId, { messageId, topic, payload, sender, consumedSeq: null });
  wakeUp(db, workflowId);
  return undefined;
}

/** A workflow sends a message; see record_send. */
export function recordSend(db: MemoryDatabase, check: OwnershipCheck, record: SendRecord): Tried<SendRecordAnswer> {
  const workflow = owned(db, check);
  if (workflow === undefined) return refusedResult(db, check, record.seq) ?? written({ kind: 'written' });
  if (workflow.results.has(record.seq)) return usedTwice(record.seq);
  const { receiver, topic, payload, idempotencyKey } = record;
  const message = { workflowId: receiver, messageId: idempotencyKey ?? check.nonce, topic, payload };
  const refused = sendMessage(db, message, workflow.workflowId);
  if (refused !== undefined) return unwritten(refused);
  addResult(db, workflow, check.nonce, { ...record, kind: 'send' });
  return written({ kind: 'written' });
}

/** A workflow takes the longest waiting message of a topic; see consume_message. */
export function consumeMessage(db: MemoryDatabase, check: OwnershipCheck, record: ReceiveRecord): Tried<ReceiveAnswer> {
  const { seq, topic, otherwise, elapsedMs } = record;
  const workflow = owned(db, check);
  if (workflow === undefined) {
    const output = db.workflows.get(check.workflowId)?.results.get(seq)?.output;
    return refusedResult(db, check, seq) ?? written({ kind: 'received', payload: output ?? '' });
  }
  const message = longestWaiting(workflow, topic);
  const payload = message?.payload ?? otherwise;
  if (payload === null) return unwritten({ kind: 'empty' });
  if (workflow.results.has(seq)) return usedTwice(seq);
  if (message !== undefined) message.consumedSeq = seq;
  addResult(db, workflow, check.nonce, { seq, name: topic, kind: 'receive', output: payload, elapsedMs });
  return written({ kind: 'received', payload });
}

/** Whether a message of the topic waits; see find_messages. */
export function hasMessage(db: MemoryDatabase, { workflowId, topic }: MessageTopic): boolean {
  const workflow = db.workflows.get(workflowId);
  return workflow !== undefined && longestWaiting(workflow, topic) !== undefined;
}

export function longestWaiting(workflow: Workflow, topic: string): MessageRow | undefined {
  for (const message of workflow.messages.values()) {
    if (message.topic === topic && message.consumedSeq === null) return message;
  }
  return undefined;
}

/** What these calls have received waits again, in its old place. */
export function giveMessagesBack(workflow: Workflow, isOf: (seq: number) => boolean): void {
  for (const message of workflow.messages.values()) {
    if (message.consumedSeq !== null && isOf(message.consumedSeq)) message.consumedSeq = null;
  }
}
