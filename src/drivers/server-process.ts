import { randomBytes } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

import { EmbeddedPostgresError } from '../errors/embedded-errors.js';
import type { ServerAccount } from './embedded-account.js';
import { readProgramVersion } from './embedded-binaries.js';
import { serverEnvironment } from './embedded-environment.js';
import { isPortFree, pickFreePort } from './embedded-port.js';
import { attachToServer, publishServer } from './embedded-sharing.js';
import { logSince, logSize, postmasterIsAlive, postmasterIsReady } from './embedded-state.js';
import { type Lifeline, startSupervisor, type SupervisorConfiguration } from './embedded-supervision.js';

/** How to start a PostgreSQL server that belongs to those processes that use it. */
export interface ServerProcessOptions {
  /** Directory with the programs `initdb` and `postgres`. */
  readonly binDir: string;
  /** The user to run the server as, where that is not the current one. */
  readonly account: ServerAccount | undefined;
  /** Kept between runs, shared by the processes that name it. Without it: a temporary directory, removed at the end. */
  readonly dataDir?: string | undefined;
  /** TCP port on 127.0.0.1. Default: a free one. */
  readonly port?: number | undefined;
  /** Server settings by name, for example `{ fsync: 'off' }`. */
  readonly settings?: Readonly<Record<string, string | number | boolean>> | undefined;
}

/** A server that runs for as long as at least one process holds it. */
export interface RunningServer {
  /** `postgresql://…`, as a superuser, without a password: any user of this machine could connect while it runs. */
  readonly connectionString: string;
  /** The server's version, for example `18.4`. */
  readonly version: string;
  /** Lets go of the server. Resolves when it is down (and its temporary directory removed), or still used by another process. Idempotent. */
  stop(): Promise<void>;
}

const START_TIMEOUT_MS = 60_000;
const READINESS_POLL_MS = 20;
const CONTENTION_POLL_MS = 100;
const SUPERUSER = 'postgres';

/** The cluster's place below a data directory, which also holds the log and the file by which processes find the server. */
export function clusterDirOf(dataDir: string): string {
  return join(dataDir, 'cluster');
}

/**
 * Starts a server, or joins the one that already runs on `dataDir`; the settings of the process that started it apply.
 *
 * The server dies with its last user, even one that is killed: see `embedded-supervisor.mjs`.
 * @throws EmbeddedPostgresError with the server's log when it cannot be started.
 */
export async function startServer(options: ServerProcessOptions): Promise<RunningServer> {
  const version = parseVersion(await readProgramVersion(options.binDir, 'postgres', options.account));
  const dataDir = prepareDataDir(options);
  const deadline = performance.now() + START_TIMEOUT_MS;
  for (;;) {
    if (options.dataDir !== undefined) {
      const joined = await attachToServer(dataDir);
      if (joined !== undefined) return running(joined.connectionString, joined.version, joined.lifeline);
    }
    const attempt = await attemptStart(options, dataDir, version, deadline);
    if (attempt.kind === 'started') return running(attempt.connectionString, version, attempt.lifeline);
    const retry = attempt.kind !== 'failed' && performance.now() < deadline;
    if (!retry) throw startFailure(attempt, dataDir);
    // Another process is starting or stopping a server here, or took the port between our look and our start.
    await delay(CONTENTION_POLL_MS);
  }
}

type StartAttempt =
  | { readonly kind: 'started'; readonly connectionString: string; readonly lifeline: Lifeline }
  | { readonly kind: 'contended' | 'port-taken' | 'failed'; readonly log: string };

async function attemptStart(
  options: ServerProcessOptions,
  dataDir: string,
  version: string,
  deadline: number,
): Promise<StartAttempt> {
  const port = options.port ?? (await pickFreePort());
  const configuration = configure(options, dataDir, port);
  const logStart = logSize(configuration.logFile);
  const { lifeline, announced } = startSupervisor(configuration);
  const clusterDir = clusterDirOf(dataDir);
  const announcement = await announced;
  const serverPid = announcement?.serverPid;
  if (serverPid !== undefined) {
    while (!lifeline.ended && performance.now() < deadline) {
      if (postmasterIsReady(clusterDir, serverPid)) {
        const connectionString = `postgresql://${SUPERUSER}@127.0.0.1:${String(port)}/postgres`;
        const { shareToken } = configuration;
        const sharePort = announcement?.sharePort;
        if (shareToken !== null && sharePort !== undefined) {
          publishServer(dataDir, { connectionString, version, sharePort, shareToken });
        }
        return { kind: 'started', connectionString, lifeline };
      }
      await delay(READINESS_POLL_MS);
    }
  }
  // Before the supervisor is let go, since a failed temporary server takes its log with it.
  const log = logSince(configuration.logFile, logStart);
  await lifeline.release();
  if (options.dataDir !== undefined && postmasterIsAlive(clusterDir)) return { kind: 'contended', log };
  if (options.port === undefined && !(await isPortFree(port))) return { kind: 'port-taken', log };
  return { kind: 'failed', log };
}

function configure(options: ServerProcessOptions, dataDir: string, port: number): SupervisorConfiguration {
  const clusterDir = clusterDirOf(dataDir);
  const program = (name: string): string => join(options.binDir, name);
  const draft = join(dataDir, `draft-${randomBytes(6).toString('hex')}`);
  const temporary = options.dataDir === undefined;
  const initdbArguments = ['-D', draft, '-U', SUPERUSER, '-A', 'trust', '-E', 'UTF8', '--locale=C'];
  // A temporary cluster does not outlive its server, let alone a power cut.
  if (temporary) initdbArguments.push('--no-sync');
  const stopArguments = ['stop', '-D', clusterDir, '-m', 'fast', '-W'];
  return {
    workDir: dataDir,
    logFile: join(dataDir, 'server.log'),
    account: options.account ?? null,
    environment: serverEnvironment(),
    initialise: existsSync(clusterDir)
      ? null
      : { program: program('initdb'), args: initdbArguments, draft, target: clusterDir },
    server: { program: program('postgres'), args: ['-D', clusterDir, ...settingArguments(options, port)] },
    stopCommand: process.platform === 'win32' ? { program: program('pg_ctl'), args: stopArguments } : null,
    shareToken: temporary ? null : randomBytes(32).toString('hex'),
    removeAfterwards: temporary ? dataDir : null,
  };
}

function settingArguments(options: ServerProcessOptions, port: number): string[] {
  const settings = {
    ...options.settings,
    port,
    listen_addresses: '127.0.0.1',
    // A socket's path is bounded by about 100 bytes, which a project's directory may exceed. TCP serves everyone.
    unix_socket_directories: '',
  };
  return Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${String(value)}`]);
}

function prepareDataDir(options: ServerProcessOptions): string {
  if (options.dataDir === undefined) {
    const temporary = mkdtempSync(join(realpathSync(tmpdir()), 'holdfast-'));
    // The account has to get at its cluster below, which is closed to all others.
    if (options.account !== undefined) chmodSync(temporary, 0o711);
    return temporary;
  }
  mkdirSync(options.dataDir, { recursive: true });
  // One directory, one name: the server compares paths, and changes its own directory.
  return realpathSync(options.dataDir);
}

function running(connectionString: string, version: string, lifeline: Lifeline): RunningServer {
  lifeline.background();
  return { connectionString, version, stop: () => lifeline.release() };
}

function startFailure(
  attempt: { readonly kind: string; readonly log: string },
  dataDir: string,
): EmbeddedPostgresError {
  if (existsSync(dataDir) && attempt.kind === 'contended') {
    return new EmbeddedPostgresError(
      `Another PostgreSQL server runs on ${dataDir} and was not started by Holdfast: stop it, or connect to it with DATABASE_URL.`,
      { log: attempt.log },
    );
  }
  return new EmbeddedPostgresError(`PostgreSQL did not start on ${dataDir}.`, { log: attempt.log });
}

function parseVersion(printed: string): string {
  return /\d+(?:\.\d+)*/.exec(printed)?.[0] ?? printed;
}
