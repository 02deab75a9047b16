/**
 * What `pg` has under its client, by shape. It is not documented, so that what is not as expected is not used: see
 * {@link tapOf}. Each message of the server is an event of that name.
 */
export interface PgWire {
  readonly stream: { write(data: Buffer): boolean };
  parse(message: unknown): void;
  bind(message: unknown): void;
  /** Sends a statement by the simple protocol. */
  query(text: string): void;
  emit(event: string, ...message: unknown[]): boolean;
}

/** Who stands between the library and its wire for a while. */
export interface WireListener {
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
  listener: WireListener | undefined;

  constructor(wire: PgWire) {
    this.#wire = wire;
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
}

/** The wire of a client of ours; undefined where the library keeps it in another way. */
export function tapOf(client: object): PgWireTap | undefined {
  const { connection } = client as { readonly connection?: Partial<PgWire> };
  const isKnown =
    typeof connection?.stream?.write === 'function' &&
    typeof connection.parse === 'function' &&
    typeof connection.bind === 'function' &&
    typeof connection.query === 'function' &&
    typeof connection.emit === 'function';
  return isKnown ? new PgWireTap(connection as PgWire) : undefined;
}
