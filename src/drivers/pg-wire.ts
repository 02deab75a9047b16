/**
 * What `pg` has under its client, by shape. It is not documented, so that what is not as expected is not used: see
 * `tapOf`. Each message of the server is an event of that name.
 */
export interface PgWire {
  readonly stream: { write(data: Buffer): boolean };
  parse(message: unknown): void;
  bind(message: unknown): void;
  /** Sends a statement by the simple protocol. */
  query(text: string): void;
  emit(event: string, ...message: unknown[]): boolean;
}
