import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { Socket } from 'node:net';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';

import type { ServerAccount } from './embedded-account.js';
import { serverEnvironment } from './embedded-environment.js';

/** One program to run. */
export interface ServerCommand {
  readonly program: string;
  readonly args: readonly string[];
  /** Entered before the user is switched, so it need not be one that the account can reach. */
  readonly cwd: string;
}

/** The first line that `embedded-supervisor.mjs` reads. */
export interface SupervisorConfiguration {
  readonly account: ServerAccount | null;
  readonly environment: Readonly<Record<string, string>>;
  readonly initialise: (ServerCommand & { readonly draft: string; readonly target: string }) | null;
  readonly server: ServerCommand;
  readonly stopCommand: ServerCommand | null;
  readonly shareToken: string | null;
  readonly removeAfterwards: string | null;
}

/** What the supervisor says once it has started the server. */
export interface SupervisorAnnouncement {
  readonly serverPid: number | undefined;
  readonly sharePort: number | undefined;
}

/** This process's hold on a server. It ends with the process, however that ends. */
export interface Lifeline {
  /** The supervisor is gone, whether released or not. */
  readonly ended: boolean;
  /** Calls back when the supervisor is gone without having been asked to. */
  onLost(listener: () => void): void;
  /** From here on the lifeline does not keep this process from ending; until then, a start in progress does. */
  background(): void;
  /** Lets go, and waits until the server is down or others are known to hold it. Idempotent. */
  release(): Promise<void>;
}

/** A started supervisor. */
export interface Supervisor {
  readonly lifeline: Lifeline;
  /** `undefined` when the supervisor ended without having started the server. */
  readonly announced: Promise<SupervisorAnnouncement | undefined>;
}

/** Starts the supervisor, which starts the server. What the programs print goes to the open file `log`. */
export function startSupervisor(configuration: SupervisorConfiguration, log: number): Supervisor {
  const script = fileURLToPath(new URL('./embedded-supervisor.mjs', import.meta.url));
  const child = spawn(process.execPath, [script], {
    // In a session of its own: an interrupt typed at the terminal is for us, and we end the server by letting go.
    detached: true,
    stdio: ['pipe', 'pipe', log],
    env: serverEnvironment(),
    windowsHide: true,
  });
  const { stdin, stdout } = child;
  // What the types do not know: two pipes were asked for.
  if (stdin === null || stdout === null) throw new Error('The supervisor has no pipes.');
  stdin.on('error', () => undefined);
  stdin.write(`${JSON.stringify(configuration)}\n`);
  const lifeline = holdLifeline(stdin, stdout, child);
  return { lifeline, announced: firstLine(stdout).then(parseAnnouncement) };
}

/** Makes a lifeline of a pair of streams to a supervisor, which may be a child of this process. */
export function holdLifeline(toSupervisor: Writable, fromSupervisor: Readable, process?: ChildProcess): Lifeline {
  const handles = [toSupervisor, fromSupervisor].filter((stream) => stream instanceof Socket);
  let released: Promise<void> | undefined;
  let ended = false;
  fromSupervisor.once('close', () => {
    ended = true;
  });
  process?.once('error', () => {
    ended = true;
  });

  const release = async (): Promise<void> => {
    for (const handle of handles) handle.ref();
    if (!ended) {
      const answered = Promise.race([once(fromSupervisor, 'data'), once(fromSupervisor, 'close')]);
      toSupervisor.end();
      fromSupervisor.resume();
      // A broken stream means what a closed one does: nobody is there any more.
      await answered.catch(() => undefined);
    }
    for (const handle of handles) handle.destroy();
  };
  return {
    get ended() {
      return ended;
    },
    onLost: (listener) => {
      fromSupervisor.once('close', () => {
        if (released === undefined) listener();
      });
    },
    background: () => {
      process?.unref();
      for (const handle of handles) handle.unref();
    },
    release: () => (released ??= release()),
  };
}

/** The next line from a supervisor, or `undefined` when it ended first. */
export async function firstLine(stream: Readable): Promise<string | undefined> {
  const lines = createInterface({ input: stream });
  // readline passes a stream's errors on; they end the stream, and that is all there is to know here.
  lines.on('error', () => undefined);
  return new Promise((resolve) => {
    lines.once('line', (line) => {
      resolve(line);
      lines.close();
      stream.resume();
    });
    // A stream that broke is closed without an end, which readline does not notice.
    for (const ending of [lines, stream]) {
      ending.once('close', () => {
        resolve(undefined);
      });
    }
  });
}

function parseAnnouncement(line: string | undefined): SupervisorAnnouncement | undefined {
  if (line === undefined) return undefined;
  const parsed = JSON.parse(line) as { readonly serverPid: number | null; readonly sharePort: number | null };
  return { serverPid: parsed.serverPid ?? undefined, sharePort: parsed.sharePort ?? undefined };
}
