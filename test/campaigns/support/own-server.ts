import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';

import { serverEnvironment } from '../../../src/drivers/embedded-environment.js';
import { postmasterIsReady, ServerLog } from '../../../src/drivers/embedded-state.js';
import { type Lifeline, startSupervisor } from '../../../src/drivers/embedded-supervision.js';
import {
  initialise,
  makePlace,
  removePlace,
  type ServerPlace,
  type ServerRelease,
  type ServerSettings,
  SUPERUSER,
  writeSettings,
} from './own-server-place.js';
import { childrenOf, pickLastingPort, seeOff, signalTo } from './own-server-processes.js';
import type { SmallDisk } from './small-disk.js';

export interface OwnServerOptions {
  readonly release: ServerRelease;
  /** Besides PostgreSQL's own, which are durable. */
  readonly settings?: ServerSettings;
  /** Puts cluster and log on a disk of that size. 160 is about the least that works. */
  readonly diskMegabytes?: number;
}

/** `fast` ends the sessions and writes everything; `immediate` drops everything, so that the next start recovers. */
export type StopMode = 'fast' | 'immediate';

const START_MS = 90_000;
const END_MS = 60_000;
const POLL_MS = 20;
/** Between two attempts to start: what an earlier postmaster left behind goes by itself. */
const RETRY_MS = 100;

const STOP_SIGNALS = { fast: 'SIGINT', immediate: 'SIGQUIT' } as const satisfies Record<StopMode, NodeJS.Signals>;

/** One running postmaster. */
interface Running {
  readonly pid: number;
  readonly lifeline: Lifeline;
}

/**
 * A PostgreSQL that belongs to one campaign, which may do anything to it. Its address stays the same, whatever happens. It
 * dies with this process, however that ends.
 */
export class OwnServer {
  readonly port: number;
  readonly place: ServerPlace;
  readonly release: ServerRelease;
  #settings: ServerSettings;
  #running: Running | undefined;

  constructor(release: ServerRelease, place: ServerPlace, port: number, settings: ServerSettings) {
    this.release = release;
    this.place = place;
    this.port = port;
    this.#settings = settings;
  }

  /** Makes an empty cluster and starts it. */
  static async create({ release, settings = {}, diskMegabytes }: OwnServerOptions): Promise<OwnServer> {
    const place = await makePlace(release, diskMegabytes);
    const server = new OwnServer(release, place, await pickLastingPort(), settings);
    try {
      initialise(place);
      await server.start();
      return server;
    } catch (error) {
      await server.close();
      throw error;
    }
  }

  /** Of the database `postgres`, as a superuser. */
  get url(): string {
    return this.urlOf('postgres');
  }

  urlOf(database: string): string {
    return `postgresql://${SUPERUSER}@127.0.0.1:${String(this.port)}/${database}`;
  }

  get disk(): SmallDisk | undefined {
    return this.place.disk;
  }

  /** False also when it has ended by itself. */
  get isRunning(): boolean {
    return this.#running?.lifeline.ended === false;
  }

  get settings(): ServerSettings {
    return this.#settings;
  }

  /**
   * Resolves when it takes connections, after whatever recovery it needs. Nothing happens if it runs already.
   * @throws Error with the end of its log when it does not start
   */
  async start(): Promise<void> {
    if (this.isRunning) return;
    await this.#running?.lifeline.release();
    writeSettings(this.place, this.#settings);
    const deadline = performance.now() + START_MS;
    for (;;) {
      const attempt = await this.#attempt(deadline);
      if (attempt.running !== undefined) {
        this.#running = attempt.running;
        return;
      }
      if (performance.now() > deadline) throw new Error(`PostgreSQL did not start:\n${attempt.log}`);
      await pause(RETRY_MS);
    }
  }

  /** Resolves when nothing of it runs any more. Nothing happens if it does not run. */
  async stop(mode: StopMode): Promise<void> {
    await this.#end(STOP_SIGNALS[mode]);
  }

  async restart(mode: StopMode): Promise<void> {
    await this.stop(mode);
    await this.start();
  }

  /**
   * SIGKILL of the postmaster. Its other processes notice and go by themselves; a statement that is running may be
   * completed before. Resolves when nothing of it runs any more.
   */
  async crash(): Promise<void> {
    await this.#end('SIGKILL');
  }

  /**
   * SIGKILL of one session's process, which makes the postmaster end all of them and recover. It goes on by itself.
   * @returns whether there was a session of that application
   */
  async crashBackend(applicationName = 'holdfast'): Promise<boolean> {
    const [victim] = await this.query<{ pid: number }>(
      `SELECT pid FROM pg_stat_activity WHERE application_name = $1 AND backend_type = 'client backend'
        ORDER BY random() LIMIT 1`,
      [applicationName],
    );
    if (victim === undefined) return false;
    return signalTo(victim.pid, 'SIGKILL');
  }

  /** Changes settings on top of those that it has; those that need a restart wait for one. Does not wait until sessions have seen it. */
  configure(settings: ServerSettings): void {
    this.#settings = { ...this.#settings, ...settings };
    writeSettings(this.place, this.#settings);
    if (this.#running !== undefined && this.isRunning) signalTo(this.#running.pid, 'SIGHUP');
  }

  /** One statement on a connection of its own. */
  async query<Row extends pg.QueryResultRow>(statement: string, parameters: unknown[] = []): Promise<Row[]> {
    const client = new pg.Client({ connectionString: this.url, connectionTimeoutMillis: 10_000 });
    client.on('error', () => undefined);
    await client.connect();
    try {
      return (await client.query<Row>(statement, parameters)).rows;
    } finally {
      await client.end();
    }
  }

  /** Everything that it has logged. */
  log(): string {
    return readFileSync(join(this.place.root, 'server.log'), 'utf8');
  }

  /** Stops it and removes everything. Idempotent. */
  async close(): Promise<void> {
    this.place.disk?.free();
    await this.stop('immediate');
    removePlace(this.place);
  }

  async #attempt(deadline: number): Promise<{ readonly running: Running | undefined; readonly log: string }> {
    const { binDir, account, clusterDir, root } = this.place;
    const log = new ServerLog(root);
    try {
      const { lifeline, announced } = startSupervisor(
        {
          account: account ?? null,
          environment: serverEnvironment(),
          initialise: null,
          server: {
            program: join(binDir, 'postgres'),
            args: ['-D', clusterDir, '-p', String(this.port), '-h', '127.0.0.1', '-k', ''],
            cwd: clusterDir,
          },
          stopCommand: null,
          shareToken: null,
          removeAfterwards: null,
        },
        log.descriptor,
      );
      const pid = (await announced)?.serverPid;
      while (pid !== undefined && !lifeline.ended && performance.now() < deadline) {
        if (postmasterIsReady(clusterDir, pid)) {
          lifeline.background();
          return { running: { pid, lifeline }, log: '' };
        }
        await pause(POLL_MS);
      }
      await lifeline.release();
      return { running: undefined, log: log.excerpt() };
    } finally {
      log.close();
    }
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const running = this.#running;
    if (running === undefined) return;
    this.#running = undefined;
    const children = childrenOf(running.pid);
    if (!running.lifeline.ended) signalTo(running.pid, signal);
    const deadline = performance.now() + END_MS;
    while (!running.lifeline.ended) {
      if (performance.now() > deadline && signalTo(running.pid, 'SIGKILL')) {
        console.warn(`PostgreSQL did not end within ${String(END_MS / 1_000)} s of a ${signal}, and was killed.`);
      }
      await pause(POLL_MS);
    }
    await running.lifeline.release();
    await seeOff(children, END_MS);
  }
}
