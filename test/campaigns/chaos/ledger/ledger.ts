import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { Entry } from './entry.js';
import { LedgerClient } from './ledger-client.js';

/** The ledger's process, as the campaign handles it. */
export class LedgerProcess {
  readonly port: number;
  readonly client: LedgerClient;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, port: number, client: LedgerClient) {
    this.#child = child;
    this.port = port;
    this.client = client;
  }

  static async launch(program: string, path: string): Promise<LedgerProcess> {
    const child = fork(program, [path]);
    const [{ port }] = (await once(child, 'message')) as [{ port: number }];
    return new LedgerProcess(child, port, await LedgerClient.open(port, 'supervisor'));
  }

  async end(): Promise<void> {
    this.client.close();
    const exited = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await exited;
  }
}

export function readLedger(path: string): readonly Entry[] {
  return readFileSync(path, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Entry);
}
