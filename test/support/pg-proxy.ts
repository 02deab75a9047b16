import { EventEmitter } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

import { type Arming, ProxyLink, type ProxyFault, type ProxyHit, type ProxyStatement } from './pg-proxy-link.js';

export type { ProxyFault, ProxyHit, ProxyStatement } from './pg-proxy-link.js';

/** What becomes of new connections: `silent` ones are accepted and never answered, `refused` ones see a closed port. */
export type ProxyAdmission = 'open' | 'closed-at-once' | 'silent' | 'refused';

/** Numbers since the start; `open` is the current one. */
export interface ProxyCounters {
  connections: number;
  open: number;
  turnedAway: number;
  statements: number;
  cancelRequests: number;
  faults: number;
  /** Writes that were refused since another one owns the workflow. */
  refusals: number;
}

/** A fault that waits for its statement. */
export interface ArmedFault {
  readonly hits: number;
  /** Resolves when the fault has happened for the first time (`drop-reply`: when the server was done). */
  readonly happened: Promise<ProxyHit>;
  disarm(): void;
}

/** Starts a proxy in front of a PostgreSQL server (no TLS). */
export async function startPgProxy(target: { targetHost: string; targetPort: number }): Promise<PgProxy> {
  const proxy = new PgProxy(target.targetHost, target.targetPort);
  await proxy.admit('open');
  return proxy;
}

/** Starts a proxy in front of the server that a connection string names. */
export async function startPgProxyFor(connectionString: string): Promise<PgProxy> {
  const url = new URL(connectionString);
  return startPgProxy({ targetHost: url.hostname, targetPort: Number(url.port === '' ? 5432 : url.port) });
}

/** Waits until two more connections have been turned away. */
export async function turnedAwayTwice(proxy: PgProxy): Promise<void> {
  const before = proxy.counters.turnedAway;
  await proxy.waitFor(({ turnedAway }) => turnedAway > before + 1);
}

/** A TCP proxy that understands the PostgreSQL protocol well enough to strike at a certain statement. */
export class PgProxy {
  readonly counters: ProxyCounters = {
    connections: 0,
    open: 0,
    turnedAway: 0,
    statements: 0,
    cancelRequests: 0,
    faults: 0,
    refusals: 0,
  };
  readonly #target: { readonly host: string; readonly port: number };
  readonly #server: Server;
  readonly #links = new Set<ProxyLink>();
  readonly #turnedAway = new Set<Socket>();
  readonly #armed = new Set<Arming>();
  readonly #changes = new EventEmitter().setMaxListeners(0);
  #admission: ProxyAdmission = 'refused';
  #port = 0;
  #fragmentBytes: number | undefined;

  constructor(host: string, port: number) {
    this.#target = { host, port };
    this.#server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
      this.#accept(client);
    });
  }

  get port(): number {
    return this.#port;
  }

  /** The same database as `original`, reached through the proxy. */
  connectionString(original: string): string {
    const url = new URL(original);
    url.hostname = '127.0.0.1';
    url.port = String(this.#port);
    return url.href;
  }

  /** Arms a fault for the next `times` statements that match. `onHit` is called for each, when `happened` would resolve. */
  arm(
    fault: ProxyFault,
    matches: RegExp | ((statement: ProxyStatement) => boolean),
    { times = 1, onHit = () => undefined }: { times?: number; onHit?: (hit: ProxyHit) => void } = {},
  ): ArmedFault {
    let isFirst: (hit: ProxyHit) => void = () => undefined;
    const happened = new Promise<ProxyHit>((resolve) => {
      isFirst = resolve;
    });
    const report = (hit: ProxyHit): void => {
      isFirst(hit);
      onHit(hit);
    };
    const predicate = matches instanceof RegExp ? (s: ProxyStatement) => matches.test(s.sql) : matches;
    const arming: Arming = { fault, matches: predicate, remaining: times, hits: 0, report };
    this.#armed.add(arming);
    return {
      get hits() {
        return arming.hits;
      },
      happened,
      disarm: () => this.#armed.delete(arming),
    };
  }

  /** Splits what is sent from now on, both ways, into pieces of 1 to `maxBytes` bytes. */
  fragment(maxBytes: number | undefined): void {
    this.#fragmentBytes = maxBytes;
  }

  async admit(admission: ProxyAdmission): Promise<void> {
    if (admission === this.#admission) return;
    if (admission === 'refused') {
      // Established connections go on; only the port is closed, so the callback would come late.
      this.#server.close();
    } else if (this.#admission === 'refused') {
      await new Promise<void>((resolve, reject) => {
        this.#server.once('error', reject);
        this.#server.listen(this.#port, '127.0.0.1', resolve);
      });
      this.#port = (this.#server.address() as AddressInfo).port;
    }
    this.#admission = admission;
  }

  /** Cuts all connections there are. */
  cutAll(options: { reset?: boolean } = {}): void {
    for (const link of this.#links) link.cut(options.reset ?? false);
  }

  /** Makes all connections there are half-open: they stay, and carry nothing. */
  blackHoleAll(): void {
    for (const link of this.#links) link.blackHole();
  }

  /** Waits until `condition` holds; it is looked at again whenever something happened. */
  async waitFor(condition: (counters: ProxyCounters) => boolean, { timeoutMs = 10_000 } = {}): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      const check = (): void => {
        if (condition(this.counters)) finish(resolve);
      };
      const finish = (settle: () => void): void => {
        clearTimeout(timer);
        this.#changes.off('change', check);
        settle();
      };
      const timer = setTimeout(() => {
        finish(() => {
          reject(new Error(`not within ${timeoutMs} ms: ${String(condition)}; ${JSON.stringify(this.counters)}`));
        });
      }, timeoutMs);
      this.#changes.on('change', check);
      check();
    });
  }

  /** Waits until that many of the clients that got no answer are still there. */
  async waitForSilentClients(count: number): Promise<void> {
    await this.waitFor(() => this.#turnedAway.size === count);
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.once('close', resolve));
    for (const socket of this.#turnedAway) socket.destroy();
    this.cutAll();
    if (this.#admission === 'refused') return;
    this.#server.close();
    await closed;
  }

  #accept(client: Socket): void {
    client.on('error', () => undefined);
    if (this.#admission !== 'open') {
      this.#count('turnedAway');
      if (this.#admission !== 'silent') {
        client.destroy();
        return;
      }
      this.#turnedAway.add(client);
      client.on('end', () => client.destroy());
      client.once('close', () => {
        this.#turnedAway.delete(client);
        this.#changes.emit('change');
      });
      client.resume();
      return;
    }
    const server = connect({ ...this.#target, allowHalfOpen: true, noDelay: true });
    const link = new ProxyLink(++this.counters.connections, client, server, {
      onStatement: (statement) => this.#faultFor(statement),
      onCancelRequest: () => {
        this.#count('cancelRequests');
      },
      onFault: (arming, hit) => {
        this.#count('faults');
        arming.report(hit);
      },
      onRefusal: () => {
        this.#count('refusals');
      },
      fragmentBytes: () => this.#fragmentBytes,
      onClosed: () => {
        this.#links.delete(link);
        this.#count('open', -1);
      },
    });
    this.#links.add(link);
    this.#count('open');
  }

  #faultFor(statement: ProxyStatement): Arming | undefined {
    this.#count('statements');
    for (const arming of this.#armed) {
      if (!arming.matches(statement)) continue;
      arming.hits++;
      if (--arming.remaining <= 0) this.#armed.delete(arming);
      return arming;
    }
    return undefined;
  }

  #count(counter: keyof ProxyCounters, by = 1): void {
    this.counters[counter] += by;
    this.#changes.emit('change');
  }
}
