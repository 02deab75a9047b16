import { randomBytes } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

import { EmbeddedPostgresError } from '../errors/embedded-errors.js';
import { canEnter, type ServerAccount } from './embedded-account.js';
import { readProgramVersion } from './embedded-binaries.js';
import { serverEnvironment } from './embedded-environment.js';
import { isPortFree, pickFreePort } from './embedded-port.js';
import { attachToServer, publishServer } from './embedded-sharing.js';
import { postmasterIsAlive, postmasterIsReady, ServerLog } from './embedded-state.js';
import {
  type Lifeline,
  type ServerCommand,
  startSupervisor,
  type SupervisorAnnouncement,
  type SupervisorConfiguration,
} from './embedded-supervision.js';

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

/**
 * Names a directory that the server's user owns but cannot walk to, such as one below root's home: the supervisor enters it before it
 * switches the user, and through this link Linux reaches it without asking for the way.
 */
const CURRENT_DIRECTORY = '/proc/self/cwd';

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
  const deadline = performance.now() + START_TIMEOUT_MS;
  for (;;) {
    const dataDir = prepareDataDir(options);
    if (options.dataDir !== undefined) {
      const joined = await attachToServer(dataDir);
      if (joined !== undefined) return running(joined, joined.lifeline);
    }
    const attempt = await attemptStart(options, dataDir, version, deadline);
    const temporaryDir = options.dataDir === undefined ? dataDir : undefined;
    if (attempt.kind === 'started') return running({ ...attempt, version }, attempt.lifeline, temporaryDir);
    if (temporaryDir !== undefined) rmSync(temporaryDir, { recursive: true, force: true });
    if (attempt.kind === 'failed' || performance.now() > deadline) throw startFailure(attempt, dataDir);
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
  const log = new ServerLog(dataDir);
  try {
    const port = options.port ?? (await pickFreePort());
    const configuration = configure(options, dataDir, port);
    const { lifeline, announced } = startSupervisor(configuration, log.descriptor);
    const announcement = await announced;
    if (await becomesReady(lifeline, dataDir, announcement, deadline)) {
      const connectionString = `postgresql://${SUPERUSER}@127.0.0.1:${String(port)}/postgres`;
      publish(dataDir, { connectionString, version }, configuration, announcement);
      return { kind: 'started', connectionString, lifeline };
    }
    await lifeline.release();
    const failure = { log: log.excerpt() };
    if (options.dataDir !== undefined && postmasterIsAlive(clusterDirOf(dataDir)))
      return { kind: 'contended', ...failure };
    if (options.port === undefined && !(await isPortFree(port))) return { kind: 'port-taken', ...failure };
    return { kind: 'failed', ...failure };
  } finally {
    log.close();
  }
}

async function becomesReady(
  lifeline: Lifeline,
  dataDir: string,
  announcement: SupervisorAnnouncement | undefined,
  deadline: number,
): Promise<boolean> {
  const serverPid = announcement?.serverPid;
  if (serverPid === undefined) return false;
  const clusterDir = clusterDirOf(dataDir);
  while (!lifeline.ended && performance.now() < deadline) {
    if (postmasterIsReady(clusterDir, serverPid)) {
      // For a supervisor that is killed: the server must not run on unsupervised.
      lifeline.onLost(() => {
        if (postmasterIsReady(clusterDir, serverPid)) process.kill(serverPid, 'SIGINT');
      });
      return true;
    }
    await delay(READINESS_POLL_MS);
  }
  return false;
}

function publish(
  dataDir: string,
  server: { readonly connectionString: string; readonly version: string },
  { shareToken }: SupervisorConfiguration,
  announcement: SupervisorAnnouncement | undefined,
): void {
  const sharePort = announcement?.sharePort;
  if (shareToken !== null && sharePort !== undefined) publishServer(dataDir, { ...server, sharePort, shareToken });
}

function configure(options: ServerProcessOptions, dataDir: string, port: number): SupervisorConfiguration {
  const clusterDir = clusterDirOf(dataDir);
  const draft = join(dataDir, `draft-${randomBytes(6).toString('hex')}`);
  const temporary = options.dataDir === undefined;
  const { account } = options;
  const reachable = process.platform !== 'linux' || account === undefined || canEnter(dataDir, account);
  const command = (name: string, directory: string, args: readonly string[]): ServerCommand => ({
    program: join(options.binDir, name),
    args: ['-D', reachable ? directory : CURRENT_DIRECTORY, ...args],
    cwd: directory,
  });
  const initdbArguments = ['-U', SUPERUSER, '-A', 'trust', '-E', 'UTF8', '--locale=C'];
  // A temporary cluster does not outlive its server, let alone a power cut.
  if (temporary) initdbArguments.push('--no-sync');
  return {
    account: account ?? null,
    environment: serverEnvironment(),
    initialise: existsSync(clusterDir)
      ? null
      : { ...command('initdb', draft, initdbArguments), draft, target: clusterDir },
    server: command('postgres', clusterDir, settingArguments(options, port)),
    stopCommand:
      process.platform === 'win32' ? command('pg_ctl', clusterDir, ['stop', '--mode=fast', '--no-wait']) : null,
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

function running(
  { connectionString, version }: Pick<RunningServer, 'connectionString' | 'version'>,
  lifeline: Lifeline,
  temporaryDir?: string,
): RunningServer {
  lifeline.background();
  return {
    connectionString,
    version,
    stop: async () => {
      await lifeline.release();
      // The supervisor has removed it, unless it was killed.
      if (temporaryDir !== undefined) rmSync(temporaryDir, { recursive: true, force: true });
    },
  };
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
