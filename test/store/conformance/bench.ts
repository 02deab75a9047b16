import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import type { WorkflowRecord } from '../../../src/store/admin-store.js';
import type {
  ChildStart,
  ClaimAnswer,
  ClaimRequest,
  EnqueueRequest,
  ExecutorIdentity,
  Ownership,
  StartAnswer,
  StartRequest,
  StepRecord,
  WriteAnswer,
} from '../../../src/store/store.js';
import type { EnqueueAnswer, QueueRecord } from '../../../src/store/queue-store.js';
import type { StoreBed } from '../support/store-bed.js';

export const LEASE_MS = 15_000;
export const BY = { actor: 'somebody', reason: null };

/** A bed with two executors, `one` and `two`, and short ways to say what tests say often. */
export class Bench {
  readonly bed: StoreBed;
  one!: ExecutorIdentity;
  two!: ExecutorIdentity;

  constructor(bed: StoreBed) {
    this.bed = bed;
  }

  async begin(): Promise<void> {
    await this.bed.reset();
    this.one = await this.register('one');
    this.two = await this.register('two');
  }

  async register(executorId: string, appVersion = 'v1'): Promise<ExecutorIdentity> {
    const registration = { executorId, appVersion, leaseMs: LEASE_MS, host: 'host', processId: 1 };
    return { executorId, incarnation: await this.bed.store.registerExecutor(registration) };
  }

  tryStart(workflowId: string, request: Partial<StartRequest> = {}): Promise<StartAnswer> {
    return this.bed.store.start({
      ...flow(workflowId),
      executor: this.one,
      appVersion: 'v1',
      token: randomUUID(),
      ...request,
    });
  }

  async start(workflowId: string, request: Partial<StartRequest> = {}): Promise<Ownership> {
    const answer = await this.tryStart(workflowId, request);
    if (answer.kind !== 'started') throw new Error(`${workflowId} was not started: ${answer.kind}`);
    return answer.ownership;
  }

  step(ownership: Ownership, seq: number, record: Partial<StepRecord> = {}): Promise<WriteAnswer> {
    return this.bed.store.checkpoint(ownership, { ...stepRecord(seq), ...record });
  }

  end(ownership: Ownership, output = '"done"'): Promise<WriteAnswer> {
    return this.bed.store.complete(ownership, { status: 'SUCCESS', output, error: null, attention: null });
  }

  giveBack(ownership: Ownership): Promise<WriteAnswer> {
    return this.bed.store.release(ownership, { to: 'ENQUEUED', unspendAttempt: false });
  }

  claim(request: Partial<ClaimRequest> = {}): Promise<ClaimAnswer> {
    return this.bed.store.claim({
      executor: this.one,
      appVersion: 'v1',
      names: ['flow'],
      limit: 100,
      deadLetterError: '"too many"',
      turns: null,
      ...request,
    });
  }

  /** The IDs that a claim takes, sorted. */
  async claimed(request: Partial<ClaimRequest> = {}): Promise<string[]> {
    const { workflows } = await this.claim(request);
    return workflows.map(({ ownership }) => ownership.workflowId).sort();
  }

  /** The ownership of the only workflow that there is to claim. */
  async take(request: Partial<ClaimRequest> = {}): Promise<Ownership> {
    const { workflows } = await this.claim(request);
    const [first] = workflows;
    if (first === undefined || workflows.length > 1) throw new Error(`${String(workflows.length)} were claimed.`);
    return first.ownership;
  }

  async enqueue(workflowId: string, request: Partial<EnqueueRequest> = {}): Promise<EnqueueAnswer> {
    // What is enqueued later is later.
    await this.bed.advance(1);
    const [answer] = await this.bed.queues.enqueue([{ ...enqueued(workflowId), ...request }]);
    if (answer === undefined) throw new Error('Each request is answered.');
    return answer;
  }

  async define(name: string, limits: Partial<QueueRecord> = {}): Promise<void> {
    await this.bed.queues.define([{ ...unlimited(name), ...limits }], { isDeclaration: false });
  }

  async send(
    workflowId: string,
    topic: string,
    payload: string,
    idempotencyKey: string | null = null,
  ): Promise<string> {
    const [answer] = await this.bed.messages.send([{ workflowId, topic, payload, idempotencyKey }]);
    return answer?.kind ?? '';
  }

  async look(workflowId: string): Promise<WorkflowRecord> {
    const record = await this.bed.admin.getWorkflow(workflowId, { payload: true });
    if (record === null) throw new Error(`There is no ${workflowId}.`);
    return record;
  }

  async statusOf(workflowId: string): Promise<string> {
    return (await this.look(workflowId)).status;
  }

  /** Names of all steps, `!` before those without a result. */
  async stepsOf(workflowId: string): Promise<string[]> {
    const page = await this.bed.admin.listSteps(workflowId, { limit: 100, cursor: null, payload: false });
    return page?.items.map(({ seq, name, complete }) => `${complete ? '' : '!'}${String(seq)} ${name}`) ?? [];
  }

  /** How each ownership ended, the first epoch first. */
  async endsOf(workflowId: string): Promise<(string | null)[]> {
    const page = await this.bed.admin.listOwnership(workflowId, { limit: 100, cursor: null });
    return page?.items.map(({ endedHow }) => endedHow).reverse() ?? [];
  }

  /** Lets all leases run out but that of the given executor. */
  async outlive(survivor: ExecutorIdentity): Promise<void> {
    await this.bed.advance(LEASE_MS);
    expect(await this.bed.store.heartbeat(survivor, LEASE_MS)).toMatchObject({ state: 'renewed' });
  }
}

export function flow(
  workflowId: string,
): Pick<StartRequest, 'workflowId' | 'name' | 'instance' | 'input' | 'maxAttempts' | 'timeoutMs' | 'attributes'> {
  return { workflowId, name: 'flow', instance: null, input: '[]', maxAttempts: 100, timeoutMs: null, attributes: null };
}

export function child(workflowId: string, request: Partial<ChildStart> = {}): ChildStart {
  return { ...flow(workflowId), token: randomUUID(), onParentCancel: 'cancel', ...request };
}

export function enqueued(workflowId: string): EnqueueRequest {
  return { ...flow(workflowId), queue: null, priority: 0, key: null, delayMs: 0, deduplication: null, debounce: null };
}

export function stepRecord(seq: number): StepRecord {
  return {
    seq,
    name: 'step',
    kind: 'step',
    output: '1',
    error: null,
    attempts: 1,
    attemptErrors: null,
    childId: null,
    elapsedMs: 0,
  };
}

export function unlimited(name: string): QueueRecord {
  return {
    name,
    concurrency: null,
    executorConcurrency: null,
    keyConcurrency: null,
    rateLimit: null,
    keyRateLimit: null,
  };
}
