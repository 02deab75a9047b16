import type { PgWire } from './pg-wire.js';

/** A result row, or anything else, of a statement that is run for its effect. */
const ignore = (): void => undefined;

/**
 * Statements that `pg` sends as one query of its own kind: it knows any object with `submit` and these handlers. They are one
 * packet with one Sync at its end, so that the first that fails skips the others.
 */
export class PgLastStatement {
  /** For who looks at what is sent. */
  readonly text: string;
  readonly values: readonly unknown[];
  readonly submit: (wire: PgWire) => null;
  readonly handleReadyForQuery: () => void;
  readonly handleError: (error: Error) => void;
  readonly handleCommandComplete: (message: { readonly text: string }) => void;
  readonly handleRowDescription = ignore;
  readonly handleDataRow = ignore;
  readonly handlePortalSuspended = ignore;
  readonly handleEmptyQuery = ignore;
  /** The library wraps it when it has a time limit of its own. */
  callback: (error: Error | null) => void = ignore;

  /** @param settle Called once at least, first with what counts: the error, or the tag of the last command. */
  constructor(
    statement: { readonly text: string; readonly values: readonly unknown[] },
    write: (wire: PgWire) => void,
    settle: (error: Error | undefined, tag: string) => void,
  ) {
    this.text = statement.text;
    this.values = statement.values;
    let tag = '';
    this.submit = (wire) => {
      write(wire);
      return null;
    };
    this.handleCommandComplete = (message) => {
      tag = message.text;
    };
    this.handleError = (error) => {
      settle(error, tag);
    };
    this.handleReadyForQuery = () => {
      this.callback(null);
      settle(undefined, tag);
    };
  }
}
