import type { MemoryDatabase } from '../../src/store/memory/memory-database.js';
import type { MessageRow, Workflow } from '../../src/store/memory/tables.js';
import type { Counts } from './violations.js';

/** What somebody outside was told has been done. */
export interface Acknowledged {
  readonly workflows: string[];
  readonly messages: { readonly workflowId: string; readonly payload: string }[];
}

/** Neither lost nor doubled, and in the order of each sender. */
export function judgeMessages(
  db: MemoryDatabase,
  acknowledged: Acknowledged,
  counts: Counts,
  violate: (text: string) => void,
): void {
  for (const { workflowId, payload } of acknowledged.messages) {
    const box = [...(db.workflows.get(workflowId)?.messages.values() ?? [])];
    if (!box.some((message) => message.payload === payload)) violate(`${workflowId} has not got ${payload}`);
  }
  for (const workflow of db.workflows.values()) {
    counts.messages += [...workflow.messages.values()].filter(({ consumedSeq }) => consumedSeq !== null).length;
    judgeBox(workflow, violate);
    const acts = db.audit.get(workflow.workflowId) ?? [];
    // What was given back is received again, after what came later.
    if (!acts.some(({ verb }) => verb === 'rewind')) judgeOrder(workflow, violate);
    judgeSent(db, workflow, violate);
  }
}

function judgeBox({ workflowId, messages, results }: Workflow, violate: (text: string) => void): void {
  const payloads = new Set<string>();
  const received = new Map<number, MessageRow>();
  for (const message of messages.values()) {
    const { payload, consumedSeq } = message;
    if (payloads.has(payload)) violate(`${workflowId} has got ${payload} twice`);
    payloads.add(payload);
    if (consumedSeq === null) continue;
    if (received.has(consumedSeq)) violate(`call ${String(consumedSeq)} of ${workflowId} has received two messages`);
    received.set(consumedSeq, message);
    if (results.get(consumedSeq)?.output !== payload) violate(`${workflowId} has lost ${payload}`);
  }
  for (const { seq, kind, output } of results.values()) {
    if (kind !== 'receive' || output?.includes('"from"') !== true) continue;
    if (!received.has(seq)) violate(`call ${String(seq)} of ${workflowId} has ${output}, which waits again`);
  }
}

function judgeOrder({ workflowId, results }: Workflow, violate: (text: string) => void): void {
  const last = new Map<string, number>();
  const received = [...results.values()].sort((one, other) => one.recordVersion - other.recordVersion);
  for (const { kind, name, output } of received) {
    if (kind !== 'receive' || output?.includes('"from"') !== true) continue;
    const { from, number } = JSON.parse(output) as { from: string; number: number };
    const line = `${name} ${from}`;
    if ((last.get(line) ?? -1) >= number)
      violate(`${workflowId} received number ${String(number)} of ${line} too late`);
    last.set(line, number);
  }
}

function judgeSent(db: MemoryDatabase, { workflowId, results }: Workflow, violate: (text: string) => void): void {
  const sent = new Map<string, number>();
  for (const { kind, name, error } of results.values()) {
    if (kind !== 'send' || error !== null) continue;
    const receiver = name.slice(name.indexOf(' to ') + 4);
    sent.set(receiver, (sent.get(receiver) ?? 0) + 1);
  }
  for (const [receiver, count] of sent) {
    const there = [...(db.workflows.get(receiver)?.messages.values() ?? [])].filter(
      ({ sender }) => sender === workflowId,
    );
    if (there.length < count) {
      violate(`${workflowId} has sent ${String(count)} messages to ${receiver}, where ${String(there.length)} are`);
    }
  }
}
