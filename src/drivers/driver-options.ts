/** Settings that every driver understands. */
export interface DriverOptions {
  /** Most connections that a pool of our own opens. Default {@link DEFAULT_MAX_CONNECTIONS}. */
  readonly maxConnections?: number;
  /** Milliseconds until a statement without its own `timeoutMs` is given up. Default {@link DEFAULT_STATEMENT_TIMEOUT_MS}. */
  readonly statementTimeoutMs?: number;
  /** Milliseconds to wait for a connection, a free or a new one. Default {@link DEFAULT_CONNECT_TIMEOUT_MS}. */
  readonly connectTimeoutMs?: number;
  /**
   * Where {@link Driver.listen} connects to. Needed when statements go through a pooler in transaction mode, which does
   * not pass notifications on. Default: where statements go.
   */
  readonly listenConnectionString?: string;
  readonly listener?: ListenerOptions;
}

/** How a listening connection is kept alive. Defaults are those of {@link LISTENER_DEFAULTS}. */
export interface ListenerOptions {
  /** Milliseconds between two checks that the connection still answers. */
  readonly lifeCheckIntervalMs?: number;
  /** Milliseconds after which an unanswered check means that the connection is dead. */
  readonly lifeCheckTimeoutMs?: number;
  /** Milliseconds before the first attempt to replace a lost connection; doubles with each failure, with jitter. */
  readonly reconnectDelayMs?: number;
  /** Milliseconds that the delay never exceeds. */
  readonly maxReconnectDelayMs?: number;
}

export const DEFAULT_MAX_CONNECTIONS = 10;
export const DEFAULT_STATEMENT_TIMEOUT_MS = 30_000;
export const DEFAULT_CONNECT_TIMEOUT_MS = 10_000;
/** First keepalive probe of an idle TCP connection. The operating system's interval and count apply from then on. */
export const KEEP_ALIVE_DELAY_MS = 30_000;
/** Shown in `pg_stat_activity`, so that an operator can tell whose connections these are. */
export const APPLICATION_NAME = 'holdfast';

export const LISTENER_DEFAULTS: Required<ListenerOptions> = {
  lifeCheckIntervalMs: 10_000,
  lifeCheckTimeoutMs: 5_000,
  reconnectDelayMs: 50,
  maxReconnectDelayMs: 10_000,
};
