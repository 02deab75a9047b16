import { randomUUID } from 'node:crypto';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';

import { firstLine, holdLifeline, type Lifeline } from './embedded-supervision.js';

const ATTACH_TIMEOUT_MS = 5_000;

/** How other processes find the server of a data directory and prove to its supervisor that they may hold it. */
export interface SharedServer {
  readonly connectionString: string;
  readonly version: string;
  readonly sharePort: number;
  readonly shareToken: string;
}

/** A server of another process, held by this one as well. */
export interface JoinedServer {
  readonly connectionString: string;
  readonly version: string;
  readonly lifeline: Lifeline;
}

function sharingFile(dataDir: string): string {
  return join(dataDir, 'server.json');
}

/** Written only by the starter of a server that runs, so by one process at a time; replaced whole, readable by its user only. */
export function publishServer(dataDir: string, server: SharedServer): void {
  const draft = `${sharingFile(dataDir)}.${randomUUID()}`;
  writeFileSync(draft, JSON.stringify(server), { mode: 0o600 });
  renameSync(draft, sharingFile(dataDir));
}

/**
 * Takes hold of the server that runs on `dataDir`, or returns `undefined` when there is none. The file may be
 * a dead server's, and its port someone else's by now: only a supervisor that knows the token counts.
 */
export async function attachToServer(dataDir: string): Promise<JoinedServer | undefined> {
  const shared = readSharingFile(dataDir);
  if (shared === undefined) return undefined;
  const socket = connect({ port: shared.sharePort, host: '127.0.0.1', allowHalfOpen: true });
  socket.on('error', () => socket.destroy());
  socket.setTimeout(ATTACH_TIMEOUT_MS, () => socket.destroy());
  socket.write(`${shared.shareToken}\n`);
  if ((await firstLine(socket)) !== 'held') {
    socket.destroy();
    return undefined;
  }
  socket.setTimeout(0);
  const lifeline = holdLifeline(socket, socket);
  return { connectionString: shared.connectionString, version: shared.version, lifeline };
}

function readSharingFile(dataDir: string): SharedServer | undefined {
  try {
    return JSON.parse(readFileSync(sharingFile(dataDir), 'utf8')) as SharedServer;
  } catch {
    return undefined;
  }
}
