import { createHash, randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';

import { type Ask, VIOLATIONS } from '../support-protocol.js';

/** What the workflow is doing at the beginning; see scene.sql. */
export const SCENES = [
  'owned',
  'owned, in a queue',
  'blocked',
  'suspended',
  'woken',
  'due',
  'enqueued',
  'ended',
  'cancelled',
  'rolling back',
  'rollback failed',
] as const;

export type SceneKind = (typeof SCENES)[number];

/** Tables of which a scene is observed. */
export const OBSERVED_TABLES: readonly string[] = [
  'workflow_status',
  'workflow_input',
  'workflow_outcome',
  'step_result',
  'step_intent',
  'stream_entry',
  'ended_ownership',
  'admin_audit',
  'message',
  'event',
  'query_request',
  'workflow_wait',
  'wakeup',
  'outbox_event',
  'transaction_generation',
  'queue_deduplication',
  'queue_debounce',
  'queue',
  'executor',
];

/** Names that scene.sql makes UUIDs of. */
const NAMES_OF_SCENES = [
  'owner',
  'stale',
  'roller',
  'first start',
  'receiver token',
  'receiver start',
  'waiter token',
  'waiter start',
  'waiter suspended',
  'zero',
  'first release',
  'one',
  'child',
  'child token',
  'event',
  'stream',
  'outbox',
  'begun',
  'question',
  'second release',
  'end',
  'plan',
  'stop',
] as const;

/** One workflow in its initial state, and those around it. */
export interface Scene {
  readonly kind: SceneKind;
  /** Every other ID of the scene begins with it. */
  readonly id: string;
  /** The owner's, or the last one's. */
  readonly token: string;
  /** What the owner saw last. */
  readonly version: number;
  /** A UUID that has this name in every scene. */
  uuid(name: string): string;
}

interface NamedScene extends Scene {
  readonly names: ReadonlyMap<string, string>;
}

export async function createScenes(ask: Ask): Promise<void> {
  const sql = await readFile(new URL('scene.sql', import.meta.url), 'utf8');
  await ask(sql.replace('-- violations', VIOLATIONS));
}

export async function setScene(ask: Ask, kind: SceneKind): Promise<Scene> {
  const id = `w-${randomUUID()}`;
  const names = new Map<string, string>();
  const uuid = (name: string): string => {
    const value = uuidOf(id, name);
    names.set(value, name);
    return value;
  };
  for (const name of NAMES_OF_SCENES) uuid(name);
  const [row] = await ask<{ version: number }>('SELECT @set_scene($1, $2)::float8 AS version', [id, kind]);
  const token = uuid(kind === 'rolling back' ? 'roller' : 'owner');
  const scene: NamedScene = { kind, id, token, version: row?.version ?? 0, uuid, names };
  return scene;
}

/** Looks at a scene for the last time, and removes it. */
export async function endScene(ask: Ask, scene: Scene): Promise<string> {
  const found = await observe(ask, scene);
  await ask('SELECT @clear_scene($1)', [scene.id]);
  return found;
}

/**
 * What is on record of a scene, with random values by name and times reduced to whether they are there; and what is wrong with that by
 * the invariants of the record.
 */
export async function observe(ask: Ask, scene: Scene): Promise<string> {
  const [row] = await ask<{ found: string }>('SELECT @observe_scene($1) AS found', [scene.id]);
  let text = row?.found ?? '';
  for (const [value, name] of (scene as NamedScene).names) text = text.replaceAll(value, `{${name}}`);
  text = text
    .replaceAll(scene.id, 'w')
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+\+[\d:]+/g, 'a time')
    .replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, 'some UUID');
  const tables = JSON.parse(text) as Record<string, unknown[] | null>;
  // Their keys are random, and so was their order.
  for (const table of ['admin_audit', 'query_request']) {
    tables[table]?.sort((one, two) => (JSON.stringify(one) < JSON.stringify(two) ? -1 : 1));
  }
  return JSON.stringify(tables, undefined, 1);
}

function uuidOf(id: string, name: string): string {
  const hash = createHash('md5').update(`${id}|${name}`).digest('hex');
  return [hash.slice(0, 8), hash.slice(8, 12), hash.slice(12, 16), hash.slice(16, 20), hash.slice(20)].join('-');
}
