import type { GroupEnd } from './pg-messages.js';
import type { PgWire } from './pg-wire.js';

/** What becomes of a BEGIN that was not waited for. */
export interface BeginHandlers {
  /** It is on its way. */
  readonly onSent: () => void;
  readonly onAnswered: () => void;
  /** The server refused it. What was sent behind it has had no effect; what would be sent from now on has to be kept from it. */
  readonly onRefused: (error: unknown) => void;
}

/** What the server says of a statement before it has completed. */
const OF_A_STATEMENT = new Set(['parseComplete', 'bindComplete', 'rowDescription', 'noData', 'dataRow']);

/**
 * Sends BEGIN together with the first statement of the transaction, whoever sends that, and saves its round trip.
 *
 * - No Sync stands between the two: when BEGIN fails, the server skips the statement, which would take effect by itself otherwise.
 * - A statement of the simple protocol is not skipped so: it waits until BEGIN was answered.
 * - BEGIN is answered at once (Flush), and not with the statement, which may take as long as it likes: BEGIN has a time limit.
 * - What the server says to BEGIN is kept from the library, which knows of its own statement only.
 */
export class BeginAhead {
  readonly #wire: PgWire;
  readonly #count: number;
  readonly #messages: (end: GroupEnd) => Buffer;
  readonly #handlers: BeginHandlers;
  #state: 'armed' | 'sent' | 'over' = 'armed';

  /** @param begin What to send, and of how many statements it is. Sent once at most. */
  constructor(
    wire: PgWire,
    begin: { readonly count: number; readonly messages: (end: GroupEnd) => Buffer },
    handlers: BeginHandlers,
  ) {
    this.#wire = wire;
    this.#count = begin.count;
    this.#messages = begin.messages;
    this.#handlers = handlers;
    const own = wire as Partial<PgWire>;
    own.parse = (message) => {
      this.send();
      wire.parse(message);
    };
    own.bind = (message) => {
      this.send();
      wire.bind(message);
    };
    own.query = (text) => {
      this.#sendAndWait(() => {
        wire.query(text);
      });
    };
  }

  get isSent(): boolean {
    return this.#state !== 'armed';
  }

  get isUnanswered(): boolean {
    return this.#state === 'sent';
  }

  /** For who writes a statement past the library, and before that. */
  send(): void {
    if (this.#state === 'armed') this.#send('flush', undefined);
  }

  /** The transaction is over. One that was not sent never will be. */
  end(): void {
    this.#disarm();
    delete (this.#wire as Partial<PgWire>).emit;
    this.#state = 'over';
  }

  #sendAndWait(next: () => void): void {
    this.#send('sync', next);
  }

  #send(end: GroupEnd, next: (() => void) | undefined): void {
    this.#disarm();
    this.#state = 'sent';
    this.#listen(next);
    this.#wire.stream.write(this.#messages(end));
    this.#handlers.onSent();
  }

  /** `next` is called when the server is ready for more, which it says once it has had a Sync. */
  #listen(next: (() => void) | undefined): void {
    const wire = this.#wire;
    const emit = wire.emit.bind(wire);
    let awaited = this.#count;
    const answered = (): void => {
      delete (wire as Partial<PgWire>).emit;
      this.#state = 'over';
      this.#handlers.onAnswered();
    };
    wire.emit = (event, ...message) => {
      if (awaited > 0 && OF_A_STATEMENT.has(event)) return true;
      if (event === 'commandComplete') {
        if (awaited === this.#count) assertBegun(message[0]);
        awaited -= 1;
        if (awaited === 0 && next === undefined) answered();
        return true;
      }
      if (event === 'readyForQuery' && next !== undefined) {
        answered();
        next();
        return true;
      }
      if (event === 'errorMessage') {
        answered();
        this.#handlers.onRefused(message[0]);
      }
      return emit(event, ...message);
    };
  }

  /** The library's own methods come to light again. */
  #disarm(): void {
    const own = this.#wire as Partial<PgWire>;
    delete own.parse;
    delete own.bind;
    delete own.query;
  }
}

/** Whatever else had been executed in its place, the statements behind it would not be in a transaction. */
function assertBegun(message: unknown): void {
  const { text } = message as { readonly text?: string };
  if (text !== 'BEGIN') throw new TypeError(`The server has answered "${String(text)}" to BEGIN.`);
}
