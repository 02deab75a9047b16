import { Socket } from 'node:net';

import type { PgClientClass, PgConnectionConfig } from './pg-library.js';
import { PgSession } from './pg-session.js';
import { type SessionTraits, UNKNOWN_TRAITS } from './session.js';
import type { PoolableSession, PoolEvents } from './session-pool.js';

/** Milliseconds that a connection gets to say goodbye before its socket is cut. */
const CLOSE_GRACE_MS = 2_000;

/** A connection that we opened. Its socket is ours, since `pg` has no way to give up on a half-open one. */
export class OwnPgSession extends PgSession implements PoolableSession {
  readonly #client: InstanceType<PgClientClass>;
  readonly #socket: Socket;
  readonly #events: PoolEvents;
  #traits = UNKNOWN_TRAITS;
  #isClosed = false;

  constructor(Client: PgClientClass, config: PgConnectionConfig, events: PoolEvents) {
    const socket = new Socket();
    const client = new Client({ ...config, stream: () => socket });
    super(client);
    this.#client = client;
    this.#socket = socket;
    this.#events = events;
    client.on('error', () => {
      this.#close();
    });
    client.on('end', () => {
      this.#close();
    });
  }

  get traits(): SessionTraits {
    return this.#traits;
  }

  get isUsable(): boolean {
    return !this.#isClosed;
  }

  async open(): Promise<void> {
    await this.#client.connect();
    await this.prove();
  }

  async prove(): Promise<void> {
    this.#traits = await this.probe(true);
  }

  release(): void {
    this.#events.onReleased(this);
  }

  async end(): Promise<void> {
    const closed = new Promise((resolve) => this.#socket.once('close', resolve));
    const timer = setTimeout(() => this.#socket.destroy(), CLOSE_GRACE_MS);
    this.#client.end().catch(() => undefined);
    if (!this.#socket.closed) await closed;
    clearTimeout(timer);
  }

  protected cut(): void {
    this.#close();
  }

  #close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#socket.destroy();
    this.#events.onClosed(this);
  }
}
