import { Socket } from 'node:net';

import { DriverConfigurationError } from '../errors/database-errors.js';
import type { Driver } from './driver.js';
import {
  APPLICATION_NAME,
  DEFAULT_CONNECT_TIMEOUT_MS,
  DEFAULT_MAX_CONNECTIONS,
  type DriverOptions,
  KEEP_ALIVE_DELAY_MS,
} from './driver-options.js';
import type { ListenerConnection, ListenerEvents } from './listener.js';
import { PgCallersPool } from './pg-callers-pool.js';
import { loadPg, type PgClientClass, type PgConnectionConfig, type PgPool } from './pg-library.js';
import { OwnPgSession } from './pg-own-session.js';
import { SessionDriver } from './session-driver.js';
import { SessionPool } from './session-pool.js';
import { decoderOf } from './sql-values.js';

/** Options of {@link createPgDriver}: either a connection string, or a pool. */
export interface PgDriverOptions extends DriverOptions {
  /** Opens a pool of our own. */
  readonly connectionString?: string;
  /**
   * A `pg` pool of the caller's: used, never ended, its sessions left as they are. Listening does not use up one of its
   * connections, it opens another one with the pool's settings. Give the pool a `connectionTimeoutMillis`: without one,
   * a server that accepts connections and says nothing takes the pool's connections for good.
   */
  readonly pool?: PgPool;
}

/**
 * Talks to PostgreSQL through `pg`.
 * @throws DriverConfigurationError when `pg` is not installed.
 */
export async function createPgDriver(options: PgDriverOptions): Promise<Driver> {
  const { pool, connectionString } = options;
  if (pool !== undefined) return overCallersPool(pool, options);
  if (connectionString === undefined) {
    throw new DriverConfigurationError('A pg driver needs a connectionString or a pool.');
  }
  const { Client } = await loadPg();
  const config = connectionConfig(connectionString, options);
  const limits = {
    max: options.maxConnections ?? DEFAULT_MAX_CONNECTIONS,
    connectTimeoutMs: options.connectTimeoutMs ?? DEFAULT_CONNECT_TIMEOUT_MS,
  };
  const own = new SessionPool(limits, (events) => new OwnPgSession(Client, config, events));
  const listenTo = connectionConfig(options.listenConnectionString ?? connectionString, options);
  return new SessionDriver('pg', own, (events) => openListener(Client, listenTo, events), options);
}

async function overCallersPool(pool: PgPool, options: PgDriverOptions): Promise<Driver> {
  // `pg-pool` keeps both; a pool without them (a wrapper) must say where to listen.
  const { Client, options: settings } = pool as { Client?: PgClientClass; options?: PgConnectionConfig };
  const { listenConnectionString } = options;
  const listenTo = listenConnectionString === undefined ? settings : connectionConfig(listenConnectionString, options);
  const ListenClient = Client ?? (await loadPg()).Client;
  return new SessionDriver(
    'pg',
    new PgCallersPool(pool),
    (events) => {
      if (listenTo === undefined) {
        throw new DriverConfigurationError('This pool does not show its settings: pass listenConnectionString.');
      }
      return openListener(ListenClient, listenTo, events);
    },
    options,
  );
}

function connectionConfig(connectionString: string, options: DriverOptions): PgConnectionConfig {
  return {
    connectionString,
    application_name: APPLICATION_NAME,
    connectionTimeoutMillis: options.connectTimeoutMs ?? DEFAULT_CONNECT_TIMEOUT_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_DELAY_MS,
  };
}

function openListener(Client: PgClientClass, config: PgConnectionConfig, events: ListenerEvents): ListenerConnection {
  const socket = new Socket();
  const client = new Client({
    ...config,
    // A pool makes its password non-enumerable.
    ...(config.password === undefined ? undefined : { password: config.password }),
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_DELAY_MS,
    stream: config.stream ?? (() => socket),
  });
  client.on('error', events.onClosed);
  client.on('end', () => {
    events.onClosed(new Error('The listening connection was closed.'));
  });
  client.on('notification', ({ channel, payload }) => {
    events.onNotification(channel, payload ?? '');
  });
  return {
    connect: async () => {
      await client.connect();
    },
    run: (text) =>
      new Promise((resolve, reject) => {
        client.query({ text, types: { getTypeParser: decoderOf } }, (error, result) => {
          if (error) reject(error);
          else resolve(result);
        });
      }),
    destroy: () => {
      socket.destroy();
      client.end().catch(() => undefined);
    },
  };
}
