import { onAbort } from './abort-wait.js';
import type { ReadStreamOptions, StreamEntry } from '../api/stream.js';
import { InvalidArgumentError } from '../errors/admin-errors.js';
import { StreamRewrittenError } from '../errors/stream-errors.js';
import type { StreamPage, StreamPosition, StreamReads } from '../store/stream-store.js';
import { checkStreamKey } from './durable-streams.js';
import { checkKnownOptions } from './known-options.js';
import { notFound } from './not-found.js';
import { durableExecution } from './scope.js';
import type { Serializer } from './serializer.js';
import type { StreamWatcher } from './stream-watcher.js';

/** What a reader holds in memory at most: a page of so many entries, and so many bytes of values unless one has more. */
const PAGE = { entries: 200, bytes: 1024 * 1024 } as const;

const READ_OPTIONS: ReadonlySet<string> = new Set<keyof ReadStreamOptions>(['from', 'signal']);

/** What reading needs of the Holdfast or client that is asked. */
export interface StreamHost {
  readonly serializer: Serializer;
  readonly streams: StreamReads;
  readonly streamWatcher: StreamWatcher;
}

/**
 * Reads a stream, page by page, as its entries are asked for. Each loop over it is a reading of its own, from the same offset.
 * @throws InvalidArgumentError
 */
export class StreamReading<Value> implements AsyncIterable<StreamEntry<Value>> {
  readonly #host: StreamHost;
  readonly #start: StreamPosition;
  readonly #signal: AbortSignal | undefined;

  constructor(host: StreamHost, workflowId: string, key: string, options: ReadStreamOptions) {
    checkKnownOptions(options, READ_OPTIONS, 'readStream');
    const { from = 0, signal } = options;
    if (!Number.isSafeInteger(from) || from < 0) {
      throw new InvalidArgumentError('"from" must be an offset: a whole number, 0 or more.');
    }
    if (durableExecution() !== undefined) {
      throw new InvalidArgumentError(
        'A workflow cannot read a stream: what it found would differ from run to run. Read it in a step.',
      );
    }
    this.#host = host;
    this.#start = { workflowId, stream: checkStreamKey(key), next: from, lastNonce: null };
    this.#signal = signal;
  }

  [Symbol.asyncIterator](): AsyncIterator<StreamEntry<Value>, undefined, undefined> {
    const returned = new AbortController();
    const entries = this.#entries(returned.signal);
    return {
      next: () => entries.next(),
      // A generator alone would only see this when the next entry comes.
      return: () => {
        returned.abort();
        return entries.return(undefined);
      },
    };
  }

  async *#entries(returned: AbortSignal): AsyncGenerator<StreamEntry<Value>, undefined, undefined> {
    const { serializer, streamWatcher } = this.#host;
    let position = this.#start;
    const watch = streamWatcher.watch(position.workflowId);
    const fail = (reason: Error): void => {
      watch.fail(reason);
    };
    const forget = [onAbort(returned)(fail), this.#signal === undefined ? undefined : onAbort(this.#signal)(fail)];
    try {
      for (;;) {
        this.#signal?.throwIfAborted();
        const page = await this.#read(position);
        for (const { value: text, nonce, ...entry } of page.entries) {
          this.#signal?.throwIfAborted();
          position = { ...position, next: entry.offset + 1, lastNonce: nonce };
          const value = (await serializer.decode(text)) as Value;
          yield { ...entry, value };
        }
        if (page.hasMore) continue;
        if (page.isOver) return undefined;
        await watch.changed(position);
      }
    } catch (error) {
      if (returned.aborted) return undefined;
      this.#signal?.throwIfAborted();
      throw error;
    } finally {
      for (const stop of forget) stop?.();
      watch.end();
    }
  }

  async #read(position: StreamPosition): Promise<Extract<StreamPage, { readonly kind: 'page' }>> {
    const { streams, streamWatcher } = this.#host;
    streamWatcher.assertOpen();
    const page = await streams.readStream(position, PAGE).catch((error: unknown) => {
      // Closed while it was asked.
      streamWatcher.assertOpen();
      throw error;
    });
    switch (page.kind) {
      case 'page':
        return page;
      case 'missing':
        throw notFound(position.workflowId);
      case 'rewritten':
        throw new StreamRewrittenError(
          `Stream "${position.stream}" of workflow "${position.workflowId}" was taken back to before offset ${String(position.next)}, ` +
            'up to which it had been read. Read it again from the beginning.',
          { offset: position.next },
        );
    }
  }
}
