import type { Socket } from 'node:net';

/** Milliseconds that a connection gets to say goodbye before its socket is cut. */
const CLOSE_GRACE_MS = 2_000;

/**
 * The sockets of a pool. A client library that ends a connection waits for the other side to close it, which a half-open
 * one never does: it would keep the process alive until the operating system gives up on it.
 */
export class TrackedSockets {
  readonly #open = new Set<Socket>();

  add(socket: Socket): Socket {
    this.#open.add(socket);
    socket.once('close', () => this.#open.delete(socket));
    return socket;
  }

  /**
   * Waits for `ending` and for the sockets to close. When that takes too long, cuts them and waits no more: what still
   * holds a connection is then code of the application that does not return.
   */
  async endAfter(ending: Promise<unknown>): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const cut = new Promise<void>((resolve) => {
      timer = setTimeout(() => {
        for (const socket of this.#open) socket.destroy();
        resolve();
      }, CLOSE_GRACE_MS);
    });
    await Promise.race([ending.then(() => this.#allClosed()), cut]);
    clearTimeout(timer);
  }

  async #allClosed(): Promise<void> {
    await Promise.all([...this.#open].map((socket) => new Promise((resolve) => socket.once('close', resolve))));
  }
}
