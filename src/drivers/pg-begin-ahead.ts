import { isServerError } from './failures.js';
import { PgLastStatement } from './pg-last-statement.js';
import type { GroupEnd } from './pg-messages.js';
import type { PgWireTap, WireListener } from './pg-wire-tap.js';

/** BEGIN and what goes with it, and what becomes of it. */
export interface Begin {
  /** Of how many statements it is. */
  readonly count: number;
  messages(end: GroupEnd): Buffer;
  /** It is on its way. */
  onSent(): void;
  onAnswered(): void;
  /** The server refused it. What was sent behind it has had no effect; what would be sent from now on has to be kept from it. */
  onRefused(error: unknown): void;
}

/**
 * Sends BEGIN together with the first statement of the transaction, whoever sends that, and saves its round trip.
 *
 * - No Sync stands between the two: when BEGIN fails, the server skips the statement, which would take effect by itself otherwise.
 * - A statement of the simple protocol is not skipped so: it waits until BEGIN was answered.
 * - A query of a kind of its own waits before it is submitted: it may read the socket itself from then on (COPY TO of
 *   `pg-copy-streams`), and would take the answer to BEGIN for its own.
 * - BEGIN is answered at once (Flush), and not with the statement, which may take as long as it likes: BEGIN has a time limit.
 * - What the server says to BEGIN is kept from the library, which knows of its own statement only.
 */
export class BeginAhead implements WireListener {
  readonly #tap: PgWireTap;
  readonly #begin: Begin;
  /** `asked`: it is a query of the library's, which sees to the answer itself. */
  #state: 'armed' | 'asked' | 'sent' | 'over' = 'armed';
  /** How many of its statements the server has not answered. */
  #awaited: number;
  /** Called when the server is ready for more, which it says once it has had a Sync. */
  #next: (() => void) | undefined;

  /** @param begin Sent once at most. */
  constructor(tap: PgWireTap, begin: Begin) {
    this.#tap = tap;
    this.#begin = begin;
    this.#awaited = begin.count;
    tap.listener = this;
  }

  get isSent(): boolean {
    return this.#state !== 'armed';
  }

  get isUnanswered(): boolean {
    return this.#state === 'sent' || this.#state === 'asked';
  }

  beforeStatement(): void {
    if (this.#state === 'armed') this.#send('flush');
  }

  beforeText(send: () => void): void {
    if (this.#state !== 'armed') {
      send();
      return;
    }
    this.#next = send;
    this.#send('sync');
  }

  beforeOwnQuery(): void {
    if (this.#state !== 'armed') return;
    this.#state = 'asked';
    const write = (): void => {
      this.#tap.write(this.#begin.messages('sync'));
      this.#begin.onSent();
    };
    const settle = (error: Error | undefined): void => {
      // A connection that broke has not answered.
      if (this.#state !== 'asked' || (error !== undefined && !isServerError(error))) return;
      this.#answered();
      if (error !== undefined) this.#begin.onRefused(error);
    };
    this.#tap.ask(new PgLastStatement({ text: 'BEGIN', values: [] }, write, settle));
  }

  /** The transaction is over. One that was not sent never will be. */
  end(): void {
    this.#state = 'over';
    if (this.#tap.listener === this) this.#tap.listener = undefined;
  }

  keeps(event: string, message: unknown): boolean {
    if (this.#state !== 'sent') return false;
    switch (event) {
      case 'parseComplete':
      case 'bindComplete':
      case 'rowDescription':
      case 'noData':
      case 'dataRow':
        return this.#awaited > 0;
      case 'commandComplete':
        if (this.#awaited === this.#begin.count) assertBegun(message);
        this.#awaited -= 1;
        if (this.#awaited === 0 && this.#next === undefined) this.#answered();
        return true;
      case 'readyForQuery':
        if (this.#next === undefined) return false;
        this.#answered();
        this.#next();
        return true;
      case 'errorMessage':
        this.#answered();
        this.#begin.onRefused(message);
        return false;
      default:
        return false;
    }
  }

  #send(end: GroupEnd): void {
    this.#state = 'sent';
    this.#tap.write(this.#begin.messages(end));
    this.#begin.onSent();
  }

  #answered(): void {
    this.end();
    this.#begin.onAnswered();
  }
}

/** Whatever else had been executed in its place, the statements behind it would not be in a transaction. */
function assertBegun(message: unknown): void {
  const { text } = message as { readonly text?: string };
  if (text !== 'BEGIN') throw new TypeError(`The server has answered "${String(text)}" to BEGIN.`);
}
