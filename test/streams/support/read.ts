import type { StreamEntry } from '../../../src/index.js';

/** Reads to the end. */
export async function all<Value>(stream: AsyncIterable<StreamEntry<Value>>): Promise<StreamEntry<Value>[]> {
  const entries: StreamEntry<Value>[] = [];
  for await (const entry of stream) entries.push(entry);
  return entries;
}

export async function values<Value>(stream: AsyncIterable<StreamEntry<Value>>): Promise<Value[]> {
  return (await all(stream)).map(({ value }) => value);
}

/** Reads so many, and leaves. */
export async function first<Value>(
  count: number,
  stream: AsyncIterable<StreamEntry<Value>>,
): Promise<StreamEntry<Value>[]> {
  const entries: StreamEntry<Value>[] = [];
  for await (const entry of stream) {
    entries.push(entry);
    if (entries.length === count) break;
  }
  return entries;
}

/** The error's code. */
export async function codeOf(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    () => 'none',
    (error: unknown) => (error as { code?: string }).code ?? String(error),
  );
}
