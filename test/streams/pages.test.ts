import { expect, onTestFinished, test } from 'vitest';
import { StreamReading } from '../../src/engine/stream-reading.js';
import { StreamWatcher } from '../../src/engine/stream-watcher.js';
import { systemRuntime } from '../../src/runtime/system-runtime.js';
import type { StoredEntry, StreamPosition, StreamReads } from '../../src/store/stream-store.js';
import { ValueSerializer } from '../../src/values/index.js';
import { waitUntil } from '../support/launch.js';
import { codeOf } from './support/read.js';

const serializer = new ValueSerializer();

/** One stream in memory, which counts what it is asked. */
class Memory implements StreamReads {
  readonly entries: StoredEntry[] = [];
  isOver = false;
  pages = 0;
  /** How many readers were asked about at each poll. */
  readonly polls: number[] = [];
  /** Called with each page before it is answered. */
  onPage: (() => Promise<void>) | undefined;
  failure: Error | undefined;

  write(count: number): void {
    for (let n = 0; n < count; n++) {
      const offset = this.entries.length;
      const value = serializer.encode(offset) as string;
      const nonce = String(offset);
      this.entries.push({ offset, value, seq: 0, attempt: 1, epoch: 1, nonce, writtenAt: new Date(0) });
    }
  }

  async readStream({ next }: StreamPosition, { entries: limit }: { readonly entries: number }): ReturnType<StreamReads['readStream']> {
    this.pages += 1;
    const entries = this.entries.slice(next, next + limit);
    const hasMore = this.entries.length > next + limit;
    const { isOver } = this;
    await this.onPage?.();
    return { kind: 'page', entries, hasMore, isOver };
  }

  changedStreams(positions: readonly StreamPosition[]): Promise<readonly number[]> {
    this.polls.push(positions.length);
    if (this.failure !== undefined) return Promise.reject(this.failure);
    return Promise.resolve(positions.flatMap(({ next }, place) => (this.isOver || next < this.entries.length ? [place] : [])));
  }
} // prettier-ignore

function setUp(pollMs: number): { memory: Memory; watcher: StreamWatcher; read: () => StreamReading<number> } {
  const memory = new Memory();
  const watcher = new StreamWatcher(memory, pollMs, systemRuntime);
  onTestFinished(() => {
    watcher.close();
  });
  const host = { serializer, streams: memory, streamWatcher: watcher };
  return { memory, watcher, read: () => new StreamReading<number>(host, 'w', 's', {}) };
}

async function readAll(reading: StreamReading<number>): Promise<number[]> {
  const got: number[] = [];
  for await (const { value } of reading) got.push(value);
  return got;
}

test('a long stream comes page by page: nothing is fetched ahead of what is asked for', async () => {
  const { memory, read } = setUp(60_000);
  memory.write(1_000);
  memory.isOver = true;
  const pages: number[] = [];
  for await (const { offset } of read()) if (offset % 100 === 99) pages.push(memory.pages);
  expect(pages).toEqual([1, 1, 2, 2, 3, 3, 4, 4, 5, 5]);
  expect(memory.pages).toBe(5);
});

test('a hundred idle readers of a process cost one query a poll; those that have gone cost nothing', async () => {
  const { memory, read } = setUp(10);
  memory.write(1);
  const readings = Array.from({ length: 100 }, () => readAll(read()));
  await waitUntil(() => memory.polls.at(-1) === 100, 'all wait');
  expect(memory.pages).toBe(100);
  memory.write(2);
  memory.isOver = true;
  expect(await Promise.all(readings)).toEqual(Array(100).fill([0, 1, 2]));
  const polls = memory.polls.length;
  const idle = setUp(10);
  const another = readAll(idle.read());
  await waitUntil(() => idle.memory.polls.length > 5, 'other readers have polled for a while');
  expect(memory.polls.length).toBeLessThanOrEqual(polls + 1);
  idle.memory.isOver = true;
  await another;
});

test('a hint that comes while a page is under way is not lost', async () => {
  const { memory, watcher, read } = setUp(60_000);
  memory.write(1);
  memory.onPage = () => {
    // What is written now is in no page yet, and hinted at before the reader waits.
    memory.onPage = undefined;
    memory.write(1);
    memory.isOver = true;
    watcher.hint(['w']);
    return Promise.resolve();
  };
  expect(await readAll(read())).toEqual([0, 1]);
});

test('a hint for any workflow reaches every reader; one for another workflow reaches none', async () => {
  const { memory, watcher, read } = setUp(60_000);
  const reading = readAll(read());
  await waitUntil(() => memory.pages === 1, 'the reader has looked once');
  watcher.hint(['another']);
  memory.isOver = true;
  await new Promise((resolve) => setImmediate(resolve));
  expect(memory.pages).toBe(1);
  watcher.hint(null);
  expect(await reading).toEqual([]);
});

test('a poll that the database refuses ends the readings that wait with its error; closing ends them with CLOSED', async () => {
  const refused = setUp(5);
  refused.memory.failure = Object.assign(new Error('refused'), { code: 'DATABASE_ERROR' });
  expect(await codeOf(readAll(refused.read()))).toBe('DATABASE_ERROR');
  const closed = setUp(60_000);
  const reading = readAll(closed.read());
  await waitUntil(() => closed.memory.pages === 1, 'the reader has looked once');
  closed.watcher.close();
  expect(await codeOf(reading)).toBe('CLOSED');
});
