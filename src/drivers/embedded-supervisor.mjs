// Runs initdb and postgres for server-process.ts, as a process of its own in a session of its own. It is not TypeScript
// since it is started by path, both from src/ and from dist/, by a Node.js that knows nothing of either's loaders.
//
// Why a process: the server must not outlive those who use it, and a process that is killed by SIGKILL runs no handler.
// Its pipes and sockets are closed by the kernel, though. So each user holds a lifeline (the starter our stdin, every
// other one a loopback connection), and when the last lifeline ends, for whatever reason, we stop the server.
//
// Protocol: the first line on stdin is the configuration; our first line on stdout is {"serverPid", "sharePort"}. A user
// who ends its side gets "released" when others remain, or our exit once the server is down and its files are removed.

import { spawn } from 'node:child_process';
import { chownSync, existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { createInterface } from 'node:readline';

/**
 * @typedef {{ program: string, args: string[], cwd: string }} Command
 * @typedef {object} SupervisorConfiguration
 * @property {{ uid: number, gid: number } | null} account
 * @property {Record<string, string>} environment
 * @property {Command & { draft: string, target: string } | null} initialise
 * @property {Command} server
 * @property {Command | null} stopCommand for systems without signals
 * @property {string | null} shareToken lets others who know it hold the server too
 * @property {string | null} removeAfterwards
 */

/** Our standard error is the log that the starter opened. */
const LOG = 2;
const IMMEDIATE_SHUTDOWN_AFTER_MS = 15_000;
const KILL_AFTER_MS = 20_000;

/** @type {SupervisorConfiguration} */
let configuration;
let configured = false;
/** @type {import('node:child_process').ChildProcess | undefined} */
let program;
let stopping = false;
/** @type {Set<object>} */
const lifelines = new Set();

// Whoever reads our output may be gone; that is what lifelines are for.
process.stdout.on('error', () => undefined);
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, stopServer);

const input = createInterface({ input: process.stdin });
lifelines.add(input);
input.on('error', () => undefined);
input.once('line', (line) => {
  configuration = /** @type {SupervisorConfiguration} */ (JSON.parse(line));
  configured = true;
  begin();
});
input.once('close', () => {
  if (!configured) process.exit(0);
  release(input, () => process.stdout.write('released\n'));
});

function begin() {
  const { initialise } = configuration;
  if (initialise === null) {
    startServer();
    return;
  }
  mkdirSync(initialise.draft, { mode: 0o700 });
  if (configuration.account !== null) chownSync(initialise.draft, configuration.account.uid, configuration.account.gid);
  run(initialise, (status) => {
    if (stopping || status !== 0) finish();
    publish(initialise);
    startServer();
  });
}

/** @param {{ draft: string, target: string }} cluster renamed when complete, so that a half-made one is never used */
function publish({ draft, target }) {
  try {
    renameSync(draft, target);
  } catch (error) {
    rmSync(draft, { recursive: true, force: true });
    // Another process made the cluster meanwhile: use that one.
    if (!existsSync(target)) throw error;
  }
}

function startServer() {
  run(configuration.server, finish);
  const token = configuration.shareToken;
  if (token === null) announce(null);
  else share(token);
}

/** @param {number | null} sharePort */
function announce(sharePort) {
  process.stdout.write(JSON.stringify({ serverPid: program?.pid ?? null, sharePort }) + '\n');
}

/** @param {string} token */
function share(token) {
  const listener = createServer((socket) => {
    socket.on('error', () => socket.destroy());
    const lines = createInterface({ input: socket });
    lines.on('error', () => undefined);
    lines.once('line', (line) => {
      if (line !== token || stopping) {
        socket.destroy();
        return;
      }
      lifelines.add(socket);
      socket.once('close', () => release(socket, () => undefined));
      lines.once('close', () => release(socket, () => socket.end()));
      socket.write('held\n');
    });
  });
  listener.listen(0, '127.0.0.1', () => {
    const address = listener.address();
    announce(typeof address === 'object' && address !== null ? address.port : null);
  });
}

/**
 * @param {object} lifeline
 * @param {() => void} acknowledge
 */
function release(lifeline, acknowledge) {
  if (!lifelines.delete(lifeline)) return;
  if (lifelines.size > 0) acknowledge();
  else stopServer();
}

/**
 * @param {Command} command
 * @param {(status: number | null) => void} onExit
 */
function run(command, onExit) {
  program = spawn(command.program, command.args, {
    cwd: command.cwd,
    env: configuration.environment,
    stdio: ['ignore', 'ignore', LOG],
    windowsHide: true,
    ...configuration.account,
  });
  program.once('error', (error) => {
    process.stderr.write(`${String(error)}\n`);
    finish();
  });
  program.once('exit', onExit);
}

function stopServer() {
  if (stopping) return;
  stopping = true;
  if (!configured) process.exit(0);
  if (program === undefined) {
    finish();
    return;
  }
  const stopped = program;
  if (configuration.stopCommand === null) {
    stopped.kill('SIGINT'); // "fast": sessions are ended, no waiting for clients
  } else {
    const { program: stopProgram, args, cwd } = configuration.stopCommand;
    spawn(stopProgram, args, { cwd, stdio: 'ignore', windowsHide: true });
  }
  setTimeout(() => stopped.kill('SIGQUIT'), IMMEDIATE_SHUTDOWN_AFTER_MS);
  setTimeout(() => stopped.kill('SIGKILL'), KILL_AFTER_MS);
}

/** @returns {never} */
function finish() {
  if (configuration.initialise !== null) rmSync(configuration.initialise.draft, { recursive: true, force: true });
  if (configuration.removeAfterwards !== null) {
    rmSync(configuration.removeAfterwards, { recursive: true, force: true, maxRetries: 5 });
  }
  process.exit(0);
}
