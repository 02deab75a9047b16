import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import type { Statement } from './entry.js';

/** A process's line to the ledger, beside everything that faults may hit. */
export class LedgerClient {
  readonly #socket: Socket;
  readonly #waiting: (() => void)[] = [];

  private constructor(socket: Socket) {
    this.#socket = socket;
    let rest = '';
    socket.setEncoding('utf8');
    socket.on('data', (data: string) => {
      const counts = (rest + data).split('\n');
      rest = counts.pop() ?? '';
      for (const count of counts) for (const resolve of this.#waiting.splice(0, Number(count))) resolve();
    });
    // The ledger ends with the campaign; whoever is still talking to it ends, too.
    socket.on('error', () => undefined);
    socket.unref();
  }

  static async open(port: number, who: string): Promise<LedgerClient> {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true });
    await once(socket, 'connect');
    socket.write(`${who}\n`);
    return new LedgerClient(socket);
  }

  /** Resolves when it is written. What is told is on its way when this returns, and in the order of the calls. */
  tell(statement: Statement): Promise<void> {
    this.#socket.write(`${JSON.stringify(statement)}\n`);
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** Tells without waiting. */
  note(statement: Statement): void {
    void this.tell(statement);
  }

  close(): void {
    this.#socket.destroy();
  }
}
