import { randomUUID } from 'node:crypto';
import type { WorkflowStatus } from '../../../src/api/workflow-handle.js';
import type { SqlRow } from '../../../src/drivers/driver.js';
import { encodeValue } from '../../../src/values/index.js';
import type { AdminBench } from './admin-bench.js';

export const STATUSES: readonly WorkflowStatus[] = [
  'ENQUEUED',
  'DELAYED',
  'PENDING',
  'SUSPENDED',
  'BLOCKED',
  'SUCCESS',
  'ERROR',
  'CANCELLED',
  'DEAD_LETTER',
];
export const LIVE: readonly WorkflowStatus[] = ['ENQUEUED', 'DELAYED', 'PENDING', 'SUSPENDED', 'BLOCKED'];

/** What an execution holds, moved on by hand. */
export interface Owned {
  readonly workflowId: string;
  readonly token: string;
  version: number;
  readonly epoch: number;
}

export interface ChildLink {
  readonly childId: string;
  readonly seq: number;
  readonly kind?: 'workflow' | 'start';
  readonly close?: 'cancel' | 'abandon';
  readonly name?: string;
}

interface Answer extends SqlRow {
  readonly answer: string | null;
}

const CALLS = {
  start: `SELECT answer FROM @start_batch('exec', $1::int8, 'v1', ARRAY[$2::text], ARRAY[$3::uuid],
    ARRAY[$4::uuid], ARRAY[$5::text], ARRAY[NULL::text], ARRAY[$6::text], ARRAY[$7::int4], ARRAY[60000::int8],
    ARRAY['{"tenant":"a"}'])`,
  claim: `SELECT token::text AS token, epoch::float8 AS epoch, record_version::float8 AS record_version, attempts, reason
    FROM @claim_workflows('exec', $1::int8, $2::text, ARRAY['work', 'child'], 1, ARRAY[$3::text], $4::text)`,
  checkpoint: `SELECT answer FROM @checkpoint_one($1::text, $2::uuid, $3::int8, $4::uuid, $5::int4, $6::text, $7::text,
    $8::text, NULL, 1, NULL, $9::text, 5)`,
  complete: `SELECT answer FROM @complete_batch(ARRAY[$1::text], ARRAY[$2::uuid], ARRAY[$3::int8], ARRAY[$4::uuid],
    ARRAY[$5::text], ARRAY[$6::text], ARRAY[$7::text], ARRAY[NULL::text])`,
  release: `SELECT answer FROM @release_workflow($1::text, $2::uuid, $3::int8, $4::uuid, $5::text, $6::int8, false,
    $7::text, $8::text)`,
  child: `SELECT answer, child FROM @record_intent($1::text, $2::uuid, $3::int8, $4::uuid, $5::int4, $6::text, $7::text,
    NULL, NULL, $8::text, $9::text, NULL, $10::uuid, $11::text, $12::text, 100, NULL, NULL)`,
  sleep: `SELECT answer FROM @record_intent($1::text, $2::uuid, $3::int8, $4::uuid, $5::int4, 'sleep', 'sleep',
    $6::int8, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)`,
} as const;

/** Plays an executor by calling the protocol's functions one at a time. */
export class Protocol {
  readonly #bench: AdminBench;
  readonly incarnation: number;

  private constructor(bench: AdminBench, incarnation: number) {
    this.#bench = bench;
    this.incarnation = incarnation;
  }

  static async register(bench: AdminBench): Promise<Protocol> {
    const [row] = await bench.query<{ incarnation: number }>(
      `SELECT @register_executor('exec', 'v1', 3600000, 'host', 1)::float8 AS incarnation`,
    );
    return new Protocol(bench, row?.incarnation ?? 0);
  }

  async start(
    workflowId: string,
    options: { readonly maxAttempts?: number; readonly name?: string } = {},
  ): Promise<Owned> {
    const token = randomUUID();
    const { name = 'work', maxAttempts = 100 } = options;
    const input = encodeValue([workflowId]);
    const rows = await this.#bench.query<Answer>(CALLS.start, [
      this.incarnation,
      workflowId,
      token,
      randomUUID(),
      name,
      input,
      maxAttempts,
    ]);
    if (rows.length > 0) throw new Error(`start: ${String(rows[0]?.answer)}`);
    return { workflowId, token, version: 1, epoch: 1 };
  }

  /** Null when it cannot be claimed. */
  async claim(workflowId: string, appVersion = 'v1'): Promise<Owned | null> {
    const [row] = await this.#bench.query<{ token: string; epoch: number; record_version: number }>(CALLS.claim, [
      this.incarnation,
      appVersion,
      workflowId,
      encodeValue('dead'),
    ]);
    return row === undefined ? null : { workflowId, token: row.token, version: row.record_version, epoch: row.epoch };
  }

  /** What refused it, or null. */
  async checkpoint(
    owned: Owned,
    seq: number,
    options: {
      readonly output?: unknown;
      readonly kind?: string;
      readonly childId?: string;
      readonly nonce?: string;
    } = {},
  ): Promise<string | null> {
    const { output = `result ${String(seq)}`, kind = 'step', childId = null, nonce = randomUUID() } = options;
    const name = kind === 'step' ? `step${String(seq)}` : 'child';
    return this.#write(owned, CALLS.checkpoint, [nonce, seq, name, kind, encodeValue(output), childId]);
  }

  complete(owned: Owned, status: 'SUCCESS' | 'ERROR' = 'SUCCESS'): Promise<string | null> {
    const text = encodeValue(status === 'SUCCESS' ? 'done' : 'failed');
    const [output, error] = status === 'SUCCESS' ? [text, null] : [null, text];
    return this.#write(owned, CALLS.complete, [randomUUID(), status, output, error]);
  }

  release(owned: Owned, status: WorkflowStatus): Promise<string | null> {
    const blocked = status === 'BLOCKED';
    return this.#write(owned, CALLS.release, [
      randomUUID(),
      status,
      status === 'DELAYED' || status === 'SUSPENDED' ? 3_600_000 : null,
      blocked ? 'NONDETERMINISM' : null,
      blocked ? 'another path' : null,
    ]);
  }

  /** Starts a child as a step of `owned`, or attaches to it; returns what the child's execution holds. */
  async child(owned: Owned, link: ChildLink): Promise<Owned> {
    const { childId, seq, kind = 'workflow', close = 'cancel', name = 'child' } = link;
    const token = randomUUID();
    const refused = await this.#write(owned, CALLS.child, [
      randomUUID(),
      seq,
      name,
      kind,
      childId,
      name,
      token,
      encodeValue([childId]),
      close,
    ]);
    if (refused !== null) throw new Error(`child: ${refused}`);
    return { workflowId: childId, token, version: 1, epoch: 1 };
  }

  async sleep(owned: Owned, seq: number, ms: number): Promise<void> {
    const refused = await this.#write(owned, CALLS.sleep, [randomUUID(), seq, ms]);
    if (refused !== null) throw new Error(`sleep: ${refused}`);
  }

  /** A workflow with three steps and an open sleep, in this status. */
  async inStatus(workflowId: string, status: WorkflowStatus): Promise<Owned> {
    const owned = await this.start(workflowId, { maxAttempts: status === 'DEAD_LETTER' ? 1 : 100 });
    for (const seq of [0, 1, 2]) await this.checkpoint(owned, seq);
    await this.sleep(owned, 3, 3_600_000);
    switch (status) {
      case 'PENDING':
        break;
      case 'SUCCESS':
      case 'ERROR':
        await this.complete(owned, status);
        break;
      case 'CANCELLED':
        await this.#bench.admin.cancel(workflowId);
        break;
      case 'DEAD_LETTER':
        await this.release(owned, 'ENQUEUED');
        await this.claim(workflowId);
        break;
      default:
        await this.release(owned, status);
    }
    return owned;
  }

  async #write(owned: Owned, call: string, parameters: readonly (string | number | null)[]): Promise<string | null> {
    const [row] = await this.#bench.query<Answer>(call, [owned.workflowId, owned.token, owned.version, ...parameters]);
    if (row !== undefined && row.answer !== null) return row.answer;
    owned.version += 1;
    return null;
  }
}
