import { Socket } from 'node:net';

import { APPLICATION_NAME, KEEP_ALIVE_DELAY_MS } from './driver-options.js';
import type { ServerNotice } from './session.js';
import type { PostgresLibrary, PostgresOptions, PostgresSettings, PostgresSql, RawResult } from './postgres-library.js';

/** Milliseconds that a connection gets to say goodbye before its socket is cut. */
const CLOSE_GRACE_MS = 2_000;

/** Where and how to connect: a connection string, or the settings of the caller's own `sql`. */
export type PostgresTarget = string | PostgresSettings;

export interface PostgresConnectionOptions {
  readonly postgres: PostgresLibrary;
  readonly target: PostgresTarget;
  readonly connectTimeoutMs: number;
  readonly onClosed: () => void;
  readonly onNotice?: (notice: ServerNotice) => void;
  readonly onNotification?: (channel: string, payload: string) => void;
}

/**
 * One connection: an instance of the library with a pool of one, whose socket is ours and which is never connected twice.
 *
 * The library's own pool cannot be used. It has no way to destroy one connection, so one that timed out would be given
 * the next statements. Worse, a transaction or reservation goes on with its connection object after the socket closed:
 * its next statement ends the process (it writes to a socket that is `null`) or, once another caller has made the
 * connection connect again, runs in that caller's session and outside any transaction.
 */
export class PostgresConnection {
  readonly sql: PostgresSql;
  readonly #options: PostgresConnectionOptions;
  readonly #failedToConnect: Promise<never>;
  #rejectConnect: (cause: unknown) => void = () => undefined;
  #socket: Socket | undefined;
  #terminate: (() => void) | undefined;
  #attempts = 0;
  #isClosed = false;

  constructor(options: PostgresConnectionOptions) {
    this.#options = options;
    this.#failedToConnect = new Promise((_resolve, reject) => {
      this.#rejectConnect = reject;
    });
    this.#failedToConnect.catch(() => undefined);
    this.sql = this.#create();
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /**
   * Connects, by running a first statement without parameters. With several hosts the library keeps it to itself when
   * none of them can be reached, hence the race.
   */
  async open(text: string): Promise<RawResult> {
    const first = this.sql.unsafe(text, [], {
      prepare: false,
      simple: true,
      onexecute: (connection) => {
        this.#terminate = connection.terminate;
        return true;
      },
    });
    // One statement, one result.
    return Promise.race([first.raw() as Promise<RawResult>, this.#failedToConnect]);
  }

  /** Cuts the socket. What is in flight rejects. */
  destroy(): void {
    this.#close();
    this.#socket?.destroy();
  }

  /** Says goodbye to the server. */
  async end(): Promise<void> {
    const socket = this.#socket;
    if (socket === undefined || socket.destroyed) {
      this.destroy();
      return;
    }
    const closed = new Promise((resolve) => socket.once('close', resolve));
    const timer = setTimeout(() => socket.destroy(), CLOSE_GRACE_MS);
    this.#close();
    await closed;
    clearTimeout(timer);
  }

  #create(): PostgresSql {
    const { postgres, target, connectTimeoutMs, onNotice, onNotification } = this.#options;
    const own: PostgresOptions = {
      fetch_types: false,
      max: 1,
      idle_timeout: null,
      max_lifetime: null,
      connect_timeout: connectTimeoutMs / 1000,
      keep_alive: KEEP_ALIVE_DELAY_MS / 1000,
      socket: (settings) => this.#connect(settings),
      onclose: () => {
        this.#close();
      },
      onnotice: onNotice ?? (() => undefined),
      ...(onNotification === undefined ? undefined : { onnotify: onNotification }),
    };
    if (typeof target === 'string') {
      const connection = { application_name: APPLICATION_NAME };
      return postgres(target, { ...own, connection });
    }
    // As the library does for its own listening connection, and with nothing shared that it writes to.
    const separate = { parameters: {}, shared: { retries: 0, typeArrayMap: {} } };
    return postgres({
      ...target,
      parsers: { ...target.parsers },
      serializers: { ...target.serializers },
      ...separate,
      ...own,
    });
  }

  /**
   * Ends the instance, so that whatever still uses it is refused instead of connecting again. `end` alone would do so
   * only at the next turn of the event loop: too late for the ROLLBACK that follows a statement which failed with the
   * connection, and which would end the process.
   */
  #close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#terminate?.();
    this.#rejectConnect(new Error('The connection was closed.'));
    this.sql.end({ timeout: 0 }).catch(() => undefined);
    this.#options.onClosed();
  }

  async #connect(settings: PostgresSettings): Promise<Socket> {
    try {
      const socket = await this.#open(settings);
      this.#socket = socket;
      if (this.#isClosed) socket.destroy();
      return socket;
    } catch (error) {
      this.#rejectConnect(error);
      throw error;
    }
  }

  async #open(settings: PostgresSettings): Promise<Socket> {
    // The library comes back for the next host when this one is not the kind of server that was asked for, and for the
    // same one, without end or delay, when the server closes the connection before it is ready.
    const first = this.#attempts++;
    if (this.#isClosed || first >= settings.host.length) throw new Error('The server closed the connection.');
    const { target } = this.#options;
    if (typeof target !== 'string' && target.socket !== undefined) return target.socket(settings);
    if (settings.path !== false) return openSocket({ path: settings.path }, this.#options.connectTimeoutMs);
    let failure: unknown;
    for (let index = first; index < settings.host.length; index++) {
      const host = settings.host[index] ?? 'localhost';
      try {
        const socket = await openSocket({ host, port: settings.port[index] ?? 5432 }, this.#options.connectTimeoutMs);
        // Read by the library for the server name in TLS.
        return Object.assign(socket, { host });
      } catch (error) {
        failure = error;
        this.#attempts = index + 1;
      }
    }
    throw failure;
  }
}

function openSocket(
  address: { readonly path: string } | { readonly host: string; readonly port: number },
  timeoutMs: number,
): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = new Socket();
    const timer = setTimeout(() => {
      socket.destroy(new Error(`no TCP connection within ${timeoutMs} ms`));
    }, timeoutMs);
    socket.once('connect', () => {
      clearTimeout(timer);
      socket.setNoDelay(true);
      socket.off('error', fail);
      // Until the library adds its own, and after it has taken them off.
      socket.on('error', () => undefined);
      resolve(socket);
    });
    const fail = (error: Error): void => {
      clearTimeout(timer);
      reject(error);
    };
    socket.once('error', fail);
    socket.connect(address);
  });
}
