import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

/**
 * An address of 127.0.0.1 behind which the server can be changed: what a DNS name or a virtual address is in production. It
 * knows nothing of the protocol.
 */
export class Endpoint {
  readonly #server: Server;
  readonly #links = new Set<Socket>();
  #target: number | undefined;

  private constructor(target: number) {
    this.#target = target;
    this.#server = createServer({ noDelay: true }, (client) => {
      this.#accept(client);
    });
  }

  static async open(target: number): Promise<Endpoint> {
    const endpoint = new Endpoint(target);
    await new Promise<void>((resolve, reject) => {
      endpoint.#server.once('error', reject);
      endpoint.#server.listen(0, '127.0.0.1', resolve);
    });
    return endpoint;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** The same database as `original`, reached through here. */
  urlOf(original: string): string {
    const url = new URL(original);
    url.port = String(this.port);
    return url.href;
  }

  /** New connections go there; undefined: nowhere, they are closed at once. Those that are open stay where they are. */
  route(target: number | undefined): void {
    this.#target = target;
  }

  /** Resets all connections that are open. */
  cut(): void {
    for (const socket of this.#links) socket.resetAndDestroy();
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.cut();
    await closed;
  }

  #accept(client: Socket): void {
    if (this.#target === undefined) {
      client.on('error', () => undefined);
      client.destroy();
      return;
    }
    const server = connect({ host: '127.0.0.1', port: this.#target, noDelay: true });
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      this.#links.add(from);
      from.on('error', () => undefined);
      from.once('close', () => {
        this.#links.delete(from);
        to.destroy();
      });
      from.pipe(to);
    }
  }
}
