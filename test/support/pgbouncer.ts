import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { connect, createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

const BINARY = '/usr/sbin/pgbouncer';
const START_TIMEOUT_MS = 10_000;
/** Fewer than the clients of a test, so that one client's statements do meet different server connections. */
const POOL_SIZE = 4;

/** A PgBouncer in transaction mode. */
export interface PgBouncer {
  /** The same database as `original`, reached through PgBouncer. */
  connectionString(original: string): string;
  stop(): Promise<void>;
}

/**
 * Whether tests through PgBouncer can run. Where CI is set they must, so that a missing package fails them instead of
 * skipping them.
 */
export function canRunPgBouncer(): boolean {
  if (existsSync(BINARY)) return true;
  if (process.env['CI'] === 'true') throw new Error(`${BINARY} is missing: apt-get install -y pgbouncer`);
  console.warn(`Tests through PgBouncer are skipped: ${BINARY} is missing (apt-get install -y pgbouncer).`);
  return false;
}

/** Starts PgBouncer in front of the server that `serverUrl` names, for all of its databases. */
export async function startPgBouncer(serverUrl: string): Promise<PgBouncer> {
  const server = new URL(serverUrl);
  const user = decodeURIComponent(server.username === '' ? 'postgres' : server.username);
  const password = decodeURIComponent(server.password);
  const directory = await mkdtemp(join(tmpdir(), 'holdfast-pgbouncer-'));
  await chmod(directory, 0o777);
  const port = await freePort();
  const config = join(directory, 'pgbouncer.ini');
  const secret = password === '' ? '' : ` password='${password}'`;
  await writeFile(
    config,
    `[databases]
* = host=${server.hostname} port=${server.port === '' ? '5432' : server.port} user='${user}'${secret}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = ${POOL_SIZE}
server_round_robin = 1
max_client_conn = 200
query_wait_timeout = 10
logfile = ${join(directory, 'log')}
`,
  );
  await chmod(config, 0o644);
  const { command, args } = asOrdinaryUser([BINARY, config]);
  const child = spawn(command, args, { stdio: 'ignore' });
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const stop = async (): Promise<void> => {
    child.kill('SIGKILL');
    await exited;
    await rm(directory, { recursive: true, force: true });
  };
  try {
    await untilListening(port, () => child.exitCode !== null);
  } catch (cause) {
    const log = await readFile(join(directory, 'log'), 'utf8').catch(() => '(no log)');
    await stop();
    throw new Error(`PgBouncer did not start:\n${log}`, { cause });
  }
  return {
    connectionString: (original) => {
      const url = new URL(original);
      url.hostname = '127.0.0.1';
      url.port = String(port);
      return url.href;
    },
    stop,
  };
}

/** PgBouncer refuses to run as root. `setpriv` becomes the program, so that a signal reaches it. */
function asOrdinaryUser(commandLine: [string, ...string[]]): { command: string; args: string[] } {
  const [command, ...args] = commandLine;
  if (process.getuid?.() !== 0) return { command, args };
  return { command: 'setpriv', args: ['--reuid=postgres', '--regid=postgres', '--clear-groups', command, ...args] };
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

async function untilListening(port: number, hasExited: () => boolean): Promise<void> {
  const deadline = performance.now() + START_TIMEOUT_MS;
  for (;;) {
    const isListening = await new Promise<boolean>((resolve) => {
      const socket = connect(port, '127.0.0.1');
      socket.once('connect', () => {
        socket.destroy();
        resolve(true);
      });
      socket.once('error', () => {
        resolve(false);
      });
    });
    if (isListening) return;
    if (hasExited()) throw new Error('the process has ended');
    if (performance.now() > deadline) throw new Error(`nothing listens on port ${port}`);
    await pause(20);
  }
}
