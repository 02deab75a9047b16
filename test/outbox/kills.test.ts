import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { webhook, type Holdfast } from '../../src/index.js';
import { bundle, type Bundle } from '../support/bundle.js';
import { launchDefaults } from '../support/conditions.js';
import { createBed, waitUntil, type Bed } from '../support/launch.js';
import { startReceiver, type Receiver } from './support/receiver.js';

// A relay's process is killed, or paused for longer than its lease, in the middle of a delivery. The judge is the receiver.

let bed: Bed;
let adder: Holdfast;
let receiver: Receiver;
let program: Bundle;
const children = new Set<ChildProcess>();
beforeAll(async () => {
  bed = await createBed();
  adder = await bed.launch({ workflows: [] });
  receiver = await startReceiver();
  program = await bundle(new URL('./fixtures/relay-process.ts', import.meta.url));
});
afterEach(() => {
  for (const child of children) child.kill('SIGKILL');
  children.clear();
  receiver.received.length = 0;
});
afterAll(async () => {
  await bed.close();
  await receiver.close();
  await program.remove();
});

/** Resolves when the process has stopped at its point, with the first event. */
async function stopAt(point: 'before' | 'after'): Promise<ChildProcess> {
  const options = { url: receiver.url, point, launch: { ...launchDefaults(), database: bed.database.url } };
  const child = fork(program.program, [JSON.stringify(options)], { stdio: ['ignore', 'ignore', 'ignore', 'ipc'] });
  children.add(child);
  await new Promise<void>((resolve) => {
    child.on('message', (message) => {
      if (message === 'stopped') resolve();
    });
  });
  return child;
}

const left = async (): Promise<number> => (await bed.sql.query(`SELECT FROM holdfast.outbox_event`)).rows.length;

/** Another executor takes over, once the lease is over. */
async function takeOver(): Promise<Holdfast> {
  const other = await bed.launch({
    workflows: [],
    pollInterval: 20,
    outbox: { handlers: { hooks: webhook({ url: receiver.url, timeout: '60s' }) } },
  });
  await bed.sql.query(`UPDATE holdfast.outbox_event SET due_at = clock_timestamp() WHERE token IS NOT NULL`);
  return other;
}

async function addThree(): Promise<void> {
  for (const payload of [1, 2, 3]) await adder.outbox.add('hooks', payload, { key: 'k' });
}

test.each([
  ['before', [1, 2, 3]],
  ['after', [1, 1, 2, 3]],
] as const)(
  'killed %s it has posted: every event arrives, in order; a second time at most under the same ID',
  async (point, expected) => {
    await addThree();
    const child = await stopAt(point);
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
    expect(await left()).toBe(3);
    const other = await takeOver();
    await waitUntil(async () => (await left()) === 0, 'all is delivered');
    expect(receiver.received.map(({ event }) => event.payload)).toEqual(expected);
    expect(new Set(receiver.received.map(({ event }) => event.id)).size).toBe(3);
    await other.close();
  },
);

test.each(['before', 'after'] as const)(
  'paused %s it has posted, for longer than its lease: when it wakes it cannot mark an event that another one has',
  async (point) => {
    await addThree();
    const child = await stopAt(point);
    child.kill('SIGSTOP');
    let release = (): void => undefined;
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    // The one that takes over gets no answer for a while.
    const before = receiver.received.length;
    receiver.answer = async (_, nth) => {
      if (nth === before + 1) await held;
      return { status: 204 };
    };
    const other = await takeOver();
    await waitUntil(() => receiver.received.length === before + 1, 'the other one is at it');
    child.kill('SIGCONT');
    child.send('go on');
    // It has posted, if it had not, and has said so to the database, which did not believe it.
    if (point === 'before') await waitUntil(() => receiver.received.length === before + 2, 'the paused one has posted');
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(await left()).toBe(3);
    child.kill('SIGKILL');
    release();
    await waitUntil(async () => (await left()) === 0, 'all is delivered');
    const payloads = receiver.received.map(({ event }) => event.payload);
    expect(payloads).toEqual([1, 1, 2, 3]);
    receiver.answer = () => ({ status: 204 });
    await other.close();
  },
);
