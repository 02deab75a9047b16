import { randomUUID } from 'node:crypto';
import type { ClaimedEvent } from '../../../src/store/outbox-store.js';
import type { RepairRecord } from '../../../src/store/admin-store.js';
import type { ExecutorIdentity, Ownership } from '../../../src/store/store.js';
import {
  EVENTS,
  OUTBOX_TOPICS,
  EXECUTOR_IDS,
  QUEUES,
  REQUEST_IDS,
  STREAMS,
  TOPICS,
  WORKFLOW_IDS,
  type Operation,
} from './operations.js';
import type { StoreBed } from './store-bed.js';

const BY = { actor: 'test', reason: null };

/** One implementation, and what its executors hold: the same operations are done to two of them. */
export class Side {
  readonly bed: StoreBed;
  /** The last one first; those that were given up or lost come last. */
  readonly #ownerships: Ownership[] = [];
  /** The last one first. */
  readonly #claimedEvents: ClaimedEvent[] = [];
  readonly #executors: ExecutorIdentity[] = [];
  readonly #turns = new Map<number, string | null>();

  private constructor(bed: StoreBed) {
    this.bed = bed;
  }

  /** On a record that is empty but for its executors and queues. */
  static async begin(bed: StoreBed): Promise<Side> {
    await bed.reset();
    const side = new Side(bed);
    for (const executorId of EXECUTOR_IDS) await side.#register(executorId, 600_000);
    const none = {
      concurrency: null,
      executorConcurrency: null,
      keyConcurrency: null,
      rateLimit: null,
      keyRateLimit: null,
    };
    await bed.queues.define(
      QUEUES.map((name) => ({ name, ...none })),
      { isDeclaration: false },
    );
    return side;
  }

  /** What it answers, without what is random. */
  async apply(operation: Operation, token: string): Promise<unknown> {
    // So that no two operations happen at one moment: their order is that of their times.
    await this.bed.advance(1);
    return portable(await this.#apply(operation, token));
  }

  /** Everything that can be seen of a workflow. */
  async look(workflowId: string): Promise<unknown> {
    const { store, admin } = this.bed;
    const page = { limit: 100, cursor: null };
    const workflow = await admin.getWorkflow(workflowId, { payload: true });
    if (workflow === null) return { workflow, audit: portable(await admin.listAudit(workflowId, page)) };
    return portable({
      workflow,
      steps: await admin.listSteps(workflowId, { ...page, payload: true }),
      ownership: await admin.listOwnership(workflowId, page),
      audit: await admin.listAudit(workflowId, page),
      outcome: await store.readOutcomes([workflowId]),
      messages: await store.findMessages(TOPICS.map((topic) => ({ workflowId, topic }))),
      events: await store.readEvents(EVENTS.map((key) => ({ workflowId, key }))),
      streams: await Promise.all(STREAMS.map((stream) => this.#readStream(workflowId, stream))),
      answers: await this.bed.queries.readAnswers(REQUEST_IDS.map((requestId) => ({ workflowId, requestId }))),
    });
  }

  /** Everything that can be seen of the fleet. */
  async lookAtFleet(): Promise<unknown> {
    const { store, queues, admin, queries } = this.bed;
    const executors = this.#executors;
    return portable({
      queues: await queues.listCounted(),
      owned: await Promise.all(
        executors.map(async (executor) => sorted(await store.ownedWorkflows(executor), ({ workflowId }) => workflowId)),
      ),
      open: await Promise.all(
        executors.map(async (executor) =>
          sorted(await queries.open(executor), (one) => one.workflowId + one.requestId),
        ),
      ),
      events: await admin.listEvents({ isDead: null, topic: null, payload: true, limit: 100, cursor: null }),
      attention: await admin.listAttention({ codes: null, limit: 100, cursor: null }),
      unserved: await admin.unservedVersions(100),
      overview: sorted(await admin.overview(100), ({ kind, name }) => `${kind} ${name ?? ''}`),
    });
  }

  /** Pages of two, joined: so that offsets, ends and `hasMore` count. */
  async #readStream(workflowId: string, stream: string): Promise<unknown> {
    const pages = [];
    let next = 0;
    let lastNonce: string | null = null;
    for (;;) {
      const page = await this.bed.store.streams.readStream(
        { workflowId, stream, next, lastNonce },
        { entries: 2, bytes: 1_000 },
      );
      pages.push(
        page.kind === 'page' ? { ...page, entries: page.entries.map(({ nonce: _, ...entry }) => entry) } : page,
      );
      const last = page.kind === 'page' ? page.entries.at(-1) : undefined;
      if (page.kind !== 'page' || last === undefined || !page.hasMore) break;
      next = last.offset + 1;
      lastNonce = last.nonce;
    }
    return { pages, changed: await this.bed.store.streams.changedStreams([{ workflowId, stream, next, lastNonce }]) };
  }

  async #apply(operation: Operation, token: string): Promise<unknown> {
    if ('own' in operation) {
      const ownership = this.#ownerships[operation.own];
      if (ownership === undefined) return 'nothing is owned';
      const answer = await this.#execute(operation, ownership, token);
      if (isOver(operation.op, kindOf(answer))) {
        this.#ownerships.push(...this.#ownerships.splice(this.#ownerships.indexOf(ownership), 1));
      }
      return answer;
    }
    switch (operation.op) {
      case 'start': {
        const { executor, appVersion, start } = operation;
        const answer = await this.bed.store.start({ ...start, executor: this.#executor(executor), appVersion, token });
        if (answer.kind === 'started') this.#ownerships.unshift(answer.ownership);
        return answer;
      }
      case 'register':
        return this.#register(EXECUTOR_IDS[operation.executor] ?? '', operation.leaseMs);
      case 'heartbeat':
        return this.bed.store.heartbeat(this.#executor(operation.executor), operation.leaseMs);
      case 'deregister':
        return this.bed.store.deregisterExecutor(this.#executor(operation.executor));
      case 'claim':
        return this.#claim(operation);
      case 'advance':
        return this.bed.advance(operation.ms);
      default:
        return this.#fromOutside(operation);
    }
  }

  async #claim(operation: Extract<Operation, { readonly op: 'claim' }>): Promise<unknown> {
    const { executor, appVersion, names, limit, only } = operation;
    const { workflows, turns, ...report } = await this.bed.store.claim({
      executor: this.#executor(executor),
      appVersion,
      names,
      limit,
      ...(only === null ? {} : { only }),
      deadLetterError: '"dead"',
      turns: this.#turns.get(executor) ?? null,
    });
    this.#turns.set(executor, turns);
    const claimed = sorted(workflows, ({ ownership }) => ownership.workflowId);
    this.#ownerships.unshift(...claimed.map(({ ownership }) => ownership));
    return { report, hasTurns: turns !== null, claimed };
  }

  async #execute(
    operation: Extract<Operation, { readonly own: number }>,
    ownership: Ownership,
    token: string,
  ): Promise<unknown> {
    const { store } = this.bed;
    switch (operation.op) {
      case 'checkpoint': {
        const { seq, fails, text, elapsedMs, events } = operation;
        // Events come with a result that is no child's.
        const isPlain = fails || events.length === 0;
        const childId = isPlain ? operation.childId : null;
        const result = fails ? { output: null, error: text } : { output: text, error: null };
        const record = {
          seq,
          name: 'step',
          kind: 'step' as const,
          attempts: 2,
          attemptErrors: null,
          childId,
          elapsedMs,
        };
        return store.checkpoint(ownership, { ...record, ...result, ...(isPlain ? {} : { events }) });
      }
      case 'sleep': {
        const { seq, sleep } = operation;
        const until = 'inMs' in sleep ? { untilMs: this.bed.now() + sleep.inMs } : sleep;
        return store.recordIntent(ownership, { seq, name: 'sleep', kind: 'sleep', sleep: until });
      }
      case 'intend':
        return store.recordIntent(ownership, { seq: operation.seq, name: 'charge', kind: 'step' });
      case 'markUnknown':
        return store.markUnknown(ownership, { ...operation, name: 'charge' });
      case 'startChild': {
        const { seq, child, close } = operation;
        const answer = await store.recordIntent(ownership, {
          seq,
          name: child.name,
          kind: 'workflow',
          child: { ...child, token, onParentCancel: close },
        });
        if (answer.kind === 'written' && answer.child === 'created') {
          this.#ownerships.unshift({ workflowId: child.workflowId, token, epoch: 1, recordVersion: 1 });
        }
        return answer;
      }
      case 'enqueueChild': {
        const { seq, child, close } = operation;
        return store.recordEnqueue(ownership, { seq, name: child.name, child: { ...child, onParentCancel: close } });
      }
      case 'receive':
        return store.receive(ownership, operation);
      case 'send': {
        const { text, ...record } = operation;
        return store.recordSend(ownership, { ...record, name: 'send', payload: text, output: 'null', elapsedMs: 0 });
      }
      case 'setEvent': {
        const { seq, key, text } = operation;
        return store.recordEvent(ownership, { seq, key, value: text, output: 'null', elapsedMs: 0 });
      }
      case 'writeStream': {
        const { seq, stream, text, by } = operation;
        const how = by.kind === 'attempt' ? by : { ...by, output: 'null', elapsedMs: 0 };
        return store.writeStream(ownership, { seq, stream, value: by.kind === 'stream-close' ? null : text, by: how });
      }
      case 'complete': {
        const { fails, text, attention } = operation;
        const outcome = fails
          ? { status: 'ERROR' as const, output: null, error: text }
          : { status: 'SUCCESS' as const, output: text, error: null };
        return store.complete(ownership, { ...outcome, attention });
      }
      case 'release':
        return store.release(ownership, operation.release);
      case 'continueAsNew':
        return store.continueAsNew(ownership, operation);
      case 'suspend':
        return store.suspend(ownership, operation.waits);
      case 'failStuck':
        return store.failStuck(ownership, operation.error);
      case 'markStuck':
        return store.markStuck(ownership, operation.detail);
      case 'copyOwnership':
        this.#ownerships.unshift({ ...ownership });
        return undefined;
    }
  }

  async #fromOutside(
    operation: Exclude<
      Operation,
      { readonly own: number } | { readonly executor: number } | { readonly op: 'advance' }
    >,
  ): Promise<unknown> {
    const { admin, queues, messages, queries, outbox } = this.bed;
    switch (operation.op) {
      case 'enqueue':
        return queues.enqueue([operation.request]);
      case 'sendOutside':
        return messages.send([operation.message]);
      case 'ask':
        return queries.ask({ ...operation, name: 'state', args: '[]' }, operation.timeoutMs);
      case 'answer':
        return queries.answer(operation, { reply: operation.text, error: null });
      case 'defineQueue':
        return queues.define([operation.queue], { isDeclaration: operation.isDeclaration });
      case 'pauseQueue':
        return queues.update(operation.queue, { paused: operation.paused });
      case 'deleteQueue':
        return queues.delete(operation.queue, { release: operation.release });
      case 'clearDeduplication':
        return queues.clearDeduplication(100);
      case 'addEvent':
        return outbox.add({ ...operation.event, eventId: randomUUID() });
      case 'claimEvents': {
        const topics = OUTBOX_TOPICS.map((topic) => ({ topic, limit: operation.limit }));
        // Of each lane at most one is claimed, and which lane comes first is open among those that are due at one moment.
        const claimed = sorted(await outbox.claim(topics, 2_000), ({ topic, key, payload }) =>
          JSON.stringify([topic, key, payload]),
        );
        this.#claimedEvents.unshift(...claimed);
        return claimed;
      }
      case 'settleEvent': {
        const claimed = this.#claimedEvents[operation.claim];
        return claimed === undefined ? 'nothing' : outbox.settle({ ...claimed, outcome: operation.outcome });
      }
      case 'redeliver':
      case 'discard': {
        const { items } = await admin.listEvents({
          isDead: null,
          topic: null,
          payload: false,
          limit: 100,
          cursor: null,
        });
        const found = items[operation.place];
        if (found === undefined) return 'nothing';
        const request = { eventId: found.eventId, nonce: randomUUID(), by: BY };
        return operation.op === 'redeliver' ? admin.redeliverEvent(request) : admin.discardEvent(request);
      }
      case 'cancel':
        return admin.cancel([operation.workflowId], BY, {
          error: '"cancelled"',
          children: operation.children,
          compensate: operation.compensate,
        });
      case 'resume':
        return admin.resume([operation.workflowId], BY);
      case 'rewind':
        return admin.rewind(operation.workflowId, BY, { toStep: operation.toStep, childError: '"rewound"' });
      case 'repairStep':
        return admin.repairStep(operation.workflowId, BY, { ...operation, ...saidBy(operation.repair) });
      case 'fork':
        return admin.fork(operation.workflowId, BY, {
          fromStep: operation.fromStep,
          workflowId: operation.to,
          appVersion: null,
        });
      case 'delete':
        return admin.delete([operation.workflowId], BY, { force: operation.force, childError: '"deleted"' });
      case 'prioritize':
        return admin.prioritize(operation.workflowId, BY, operation.priority);
      case 'setAppVersion':
        return admin.setAppVersion([operation.workflowId], BY, operation.appVersion);
    }
  }

  async #register(executorId: string, leaseMs: number): Promise<number> {
    const registration = { executorId, appVersion: 'v1', leaseMs, host: 'host', processId: 1 };
    const incarnation = await this.bed.store.registerExecutor(registration);
    this.#executors[EXECUTOR_IDS.findIndex((id) => id === executorId)] = { executorId, incarnation };
    return incarnation;
  }

  #executor(index: number): ExecutorIdentity {
    const executor = this.#executors[index];
    if (executor === undefined) throw new TypeError('All executors are registered.');
    return executor;
  }
}

/** The same one for all who take part. */
export function newToken(): string {
  return randomUUID();
}

export { WORKFLOW_IDS };

function saidBy(repair: RepairRecord['repair']): RepairRecord {
  switch (repair) {
    case 'result':
    case 'skip':
      return { repair, output: '"repaired"', error: null };
    case 'error':
      return { repair, output: null, error: '"repaired"' };
    case 'not-happened':
    case 'retry':
      return { repair, output: null, error: null };
  }
}

/** Of an answer. */
export function kindOf(answer: unknown): unknown {
  return typeof answer === 'object' && answer !== null && 'kind' in answer ? answer.kind : undefined;
}

/** Whether the ownership is of no use any more. */
function isOver(op: Operation['op'], kind: unknown): boolean {
  if (kind === 'lost' || kind === 'missing' || kind === 'suspended' || op === 'failStuck') return true;
  return kind === 'written' && (op === 'complete' || op === 'release' || op === 'continueAsNew');
}

function sorted<Item>(items: readonly Item[], by: (item: Item) => string): Item[] {
  return items.toSorted((one, other) => (by(one) < by(other) ? -1 : 1));
}

/** What two implementations have in common: no random IDs, no microseconds, errors by their kind, JSON by its meaning. */
function portable(value: unknown): unknown {
  if (value === undefined) return null;
  const text = JSON.stringify(value, (key, found: unknown) => {
    if (key === 'token' || key === 'eventId' || key === 'auditId' || key === 'nextCursor') return undefined;
    if (key === 'error' && found instanceof Error) return 'error';
    if (typeof found === 'number') return Math.round(found);
    if ((key === 'attributes' || key === 'detail') && typeof found === 'string') return meaningOf(found);
    return found;
  });
  return JSON.parse(text) as unknown;
}

function meaningOf(text: string): unknown {
  try {
    const parsed = JSON.parse(text) as unknown;
    return typeof parsed === 'object' && parsed !== null ? Object.fromEntries(Object.entries(parsed).sort()) : parsed;
  } catch {
    return text;
  }
}
