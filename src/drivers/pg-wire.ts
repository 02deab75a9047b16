/**
 * What `pg` has under its client, by shape. It is not documented, so that what is not as expected is not used: see
 * {@link wireOf}. Each message of the server is an event of that name.
 */
export interface PgWire {
  readonly stream: { write(data: Buffer): boolean };
  parse(message: unknown): void;
  bind(message: unknown): void;
  /** Sends a statement by the simple protocol. */
  query(text: string): void;
  emit(event: string, ...message: unknown[]): boolean;
}

/** The wire of a client of ours; undefined where the library keeps it in another way. */
export function wireOf(client: object): PgWire | undefined {
  const { connection } = client as { readonly connection?: Partial<PgWire> };
  const isKnown =
    typeof connection?.stream?.write === 'function' &&
    typeof connection.parse === 'function' &&
    typeof connection.bind === 'function' &&
    typeof connection.query === 'function' &&
    typeof connection.emit === 'function';
  return isKnown ? (connection as PgWire) : undefined;
}
