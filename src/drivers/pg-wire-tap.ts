import { PgLastStatement } from './pg-last-statement.js';
import type { PgWire } from './pg-wire.js';

/** What the library takes for a query of a kind of its own: it writes to the wire what it likes, and may read from it. */
interface OwnQuery {
  submit(wire: PgWire): unknown;
}

/** What gives the library something to do, in its turn. */
type Ask = (...query: readonly unknown[]) => unknown;

/** Who stands between the library and its wire for a while. */
export interface WireListener {
  /** Before the library is given a query of a kind of its own. */
  beforeOwnQuery(): void;
  /** Before the library writes a statement of the extended protocol. */
  beforeStatement(): void;
  /** Before it writes one of the simple protocol, by calling `send`, which has to be called once. */
  beforeText(send: () => void): void;
  /** A message of the server. Returns whether it is kept from the library. */
  keeps(event: string, message: unknown): boolean;
}

/**
 * A wire that can be listened to. The methods are replaced once: an object that properties are put on and deleted from at each
 * transaction becomes a hash table for V8, and all that `pg` does with it slower.
 */
export class PgWireTap {
  readonly #wire: PgWire;
  readonly #ask: Ask;
  listener: WireListener | undefined;

  constructor(client: { query: Ask }, wire: PgWire) {
    this.#wire = wire;
    const ask = (this.#ask = client.query.bind(client));
    client.query = (...query) => {
      if (this.listener !== undefined && isOwnQuery(query[0])) this.listener.beforeOwnQuery();
      return ask(...query);
    };
    const parse = wire.parse.bind(wire);
    const bind = wire.bind.bind(wire);
    const query = wire.query.bind(wire);
    const emit = wire.emit.bind(wire);
    wire.parse = (message) => {
      this.listener?.beforeStatement();
      parse(message);
    };
    wire.bind = (message) => {
      this.listener?.beforeStatement();
      bind(message);
    };
    wire.query = (text) => {
      if (this.listener === undefined) query(text);
      else {
        this.listener.beforeText(() => {
          query(text);
        });
      }
    };
    wire.emit = (event, ...message) =>
      this.listener?.keeps(event, message[0]) === true ? true : emit(event, ...message);
  }

  write(data: Buffer): void {
    this.#wire.stream.write(data);
  }

  /** Gives the library a query of ours. */
  ask(query: PgLastStatement): void {
    this.#ask(query);
  }
}

/** Ours does what it does knowing of the listener. */
function isOwnQuery(query: unknown): boolean {
  if (typeof query !== 'object' || query === null || query instanceof PgLastStatement) return false;
  return typeof (query as Partial<OwnQuery>).submit === 'function';
}

/** The wire of a client of ours; undefined where the library keeps it in another way. */
export function tapOf(client: object): PgWireTap | undefined {
  const { connection, query } = client as { readonly connection?: Partial<PgWire>; readonly query?: unknown };
  const isKnown =
    typeof connection?.stream?.write === 'function' &&
    typeof connection.parse === 'function' &&
    typeof connection.bind === 'function' &&
    typeof connection.query === 'function' &&
    typeof connection.emit === 'function' &&
    typeof query === 'function';
  return isKnown ? new PgWireTap(client as { query: Ask }, connection as PgWire) : undefined;
}
