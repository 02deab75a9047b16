import type { NotificationHandlers, NotificationStream } from './driver.js';
import { LISTENER_DEFAULTS, type ListenerOptions } from './driver-options.js';

/** One listening connection, as a client library makes it. */
export interface ListenerConnection {
  connect(): Promise<void>;
  run(text: string): Promise<unknown>;
  /** Cuts the connection at once, connected or not. What is in flight rejects or never settles. Idempotent. */
  destroy(): void;
}

/** What a {@link ListenerConnection} reports. */
export interface ListenerEvents {
  readonly onNotification: (channel: string, payload: string) => void;
  readonly onClosed: (cause: unknown) => void;
}

export type OpenListener = (events: ListenerEvents) => ListenerConnection;

type Settings = Required<ListenerOptions> & { readonly connectTimeoutMs: number };

/** Listens on `channels` until the stream is closed, on one connection after the other. */
export function listen(
  open: OpenListener,
  channels: readonly string[],
  handlers: NotificationHandlers,
  options: ListenerOptions & { readonly connectTimeoutMs: number },
): NotificationStream {
  return new ReplacingStream(open, channels, handlers, { ...LISTENER_DEFAULTS, ...options });
}

class ReplacingStream implements NotificationStream {
  readonly #open: OpenListener;
  readonly #channels: readonly string[];
  readonly #handlers: NotificationHandlers;
  readonly #settings: Settings;
  readonly #closed = new AbortController();
  readonly #finished: Promise<void>;

  constructor(open: OpenListener, channels: readonly string[], handlers: NotificationHandlers, settings: Settings) {
    this.#open = open;
    this.#channels = channels;
    this.#handlers = handlers;
    this.#settings = settings;
    this.#finished = this.#keepListening();
  }

  async close(): Promise<void> {
    this.#closed.abort();
    await this.#finished;
  }

  #isClosed(): boolean {
    return this.#closed.signal.aborted;
  }

  async #keepListening(): Promise<void> {
    let failures = 0;
    while (!this.#isClosed()) {
      const cause = await this.#listenOnce(() => {
        failures = 0;
      });
      if (this.#isClosed()) return;
      this.#handlers.onLost(cause);
      await this.#pause(this.#delayMs(failures));
      failures++;
    }
  }

  /** Uses one connection from opening to loss; returns what ended it. */
  async #listenOnce(onListening: () => void): Promise<unknown> {
    const lifetime = new AbortController();
    const end = (cause: unknown): void => {
      lifetime.abort(cause);
    };
    const stop = (): void => {
      end(new Error('closed'));
    };
    this.#closed.signal.addEventListener('abort', stop, { once: true });
    const connection = this.#open({
      onNotification: (channel, payload) => {
        if (!lifetime.signal.aborted) this.#handlers.onNotification(channel, payload);
      },
      onClosed: end,
    });
    try {
      await within(this.#settings.connectTimeoutMs, lifetime.signal, this.#subscribe(connection));
      onListening();
      this.#handlers.onListening();
      for (;;) {
        await within(this.#settings.lifeCheckIntervalMs, lifetime.signal, undefined);
        await within(this.#settings.lifeCheckTimeoutMs, lifetime.signal, connection.run('SELECT 1'));
      }
    } catch (cause) {
      return cause;
    } finally {
      this.#closed.signal.removeEventListener('abort', stop);
      connection.destroy();
    }
  }

  async #subscribe(connection: ListenerConnection): Promise<void> {
    await connection.connect();
    for (const channel of this.#channels) await connection.run(`LISTEN "${channel.replaceAll('"', '""')}"`);
  }

  /** Doubles with each failure up to the cap; between half and all of it, so that processes do not come back in step. */
  #delayMs(failures: number): number {
    const { reconnectDelayMs, maxReconnectDelayMs } = this.#settings;
    return Math.min(reconnectDelayMs * 2 ** failures, maxReconnectDelayMs) * (0.5 + Math.random() / 2);
  }

  async #pause(delayMs: number): Promise<void> {
    await within(delayMs, this.#closed.signal, undefined).catch(() => undefined);
  }
}

/**
 * Waits for `work` at most so long; without work, waits for the time to pass. Rejects with the signal's reason as soon as
 * it is aborted. Owns its timer and its listener.
 */
async function within(timeoutMs: number, signal: AbortSignal, work: Promise<unknown> | undefined): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  let onAbort = (): void => undefined;
  const ended = new Promise<'time' | 'abort'>((resolve) => {
    timer = setTimeout(() => {
      resolve('time');
    }, timeoutMs);
    onAbort = () => {
      resolve('abort');
    };
    signal.addEventListener('abort', onAbort, { once: true });
    if (signal.aborted) onAbort();
  });
  try {
    const outcome = await (work === undefined ? ended : Promise.race([ended, work]));
    if (outcome === 'abort') signal.throwIfAborted();
    if (outcome === 'time' && work !== undefined) throw new Error(`no answer within ${timeoutMs} ms`);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', onAbort);
  }
}
