import type { SqlParameter, SqlRow } from './driver.js';
import type { PostgresConnection } from './postgres-connection.js';
import type { PostgresStatements, RawResult } from './postgres-library.js';
import {
  PROBE_SESSION,
  readTraits,
  SET_SESSION_MODES,
  type Session,
  type SessionTraits,
  type TransactionStart,
} from './session.js';
import { decoderOf, encodeText } from './sql-values.js';

/**
 * Type `unknown`: the server infers the parameter's type from the cast, as with no type at all, and the library finds no
 * serializer for it. With its serializers a JSON text would be encoded again, and `'true'` would become false.
 */
const UNKNOWN_OID = 705;

/** One connection of the pool. */
export class PostgresSession implements Session {
  readonly #connection: PostgresConnection;
  readonly #giveBack: (session: PostgresSession) => void;
  #traits: SessionTraits = { isPooled: false, hasHostileDefaults: false };
  #destroyedBy: Error | undefined;

  constructor(connection: PostgresConnection, giveBack: (session: PostgresSession) => void) {
    this.#connection = connection;
    this.#giveBack = giveBack;
  }

  get traits(): SessionTraits {
    return this.#traits;
  }

  get destroyedBy(): Error | undefined {
    return this.#destroyedBy;
  }

  get isUsable(): boolean {
    return !this.#connection.isClosed;
  }

  /** Connects; finds out what the session is, and sets it up where it is ours alone. */
  async open(): Promise<void> {
    const { sql } = this.#connection;
    const result = await this.#connection.open(PROBE_SESSION);
    let traits = readTraits(decodeRows(result)[0], result.state.pid);
    if (traits.hasHostileDefaults && !traits.isPooled) {
      await send(sql, SET_SESSION_MODES, [], false);
      traits = { ...traits, hasHostileDefaults: false };
    }
    this.#traits = traits;
  }

  async run(text: string, parameters: readonly SqlParameter[], statementName: string | undefined): Promise<SqlRow[]> {
    return this.#run(this.#connection.sql, text, parameters, statementName);
  }

  transaction<Result>(
    start: TransactionStart,
    body: (client: unknown, run: Session['run']) => Promise<Result>,
    watch: () => () => void,
  ): Promise<Result> {
    // The library sends BEGIN, COMMIT and ROLLBACK, since only it can make the `TransactionSql` that its users know.
    let stop = watch();
    return this.#connection.sql
      .begin(start.modes, async (transaction) => {
        try {
          if (start.first !== undefined) await send(transaction, start.first, [], false);
          stop();
          return await body(transaction, this.#run.bind(this, transaction));
        } finally {
          stop();
          stop = watch();
        }
      })
      .finally(() => {
        stop();
      });
  }

  destroy(cause: Error): void {
    if (this.#destroyedBy !== undefined) return;
    this.#destroyedBy = cause;
    this.#connection.destroy();
  }

  release(): void {
    this.#giveBack(this);
  }

  end(): Promise<void> {
    return this.#connection.end();
  }

  async #run(
    sql: PostgresStatements,
    text: string,
    parameters: readonly SqlParameter[],
    statementName: string | undefined,
  ): Promise<SqlRow[]> {
    // The library hides a pooler's mismatches by preparing once more under another name, and leaves a statement behind
    // on the server each time: so nothing is prepared behind a pooler. It chooses the names itself.
    const isPrepared = statementName !== undefined && !this.#traits.isPooled;
    if (this.#connection.isClosed) throw new Error('The connection was closed.');
    return decodeRows(last(await send(sql, text, parameters, isPrepared)));
  }
}

function send(
  sql: PostgresStatements,
  text: string,
  parameters: readonly SqlParameter[],
  prepare: boolean,
): Promise<RawResult | readonly RawResult[]> {
  const values = parameters.map((parameter) => sql.typed(encodeText(parameter), UNKNOWN_OID));
  return sql.unsafe(text, values, { prepare, simple: !prepare && values.length === 0 }).raw();
}

/** Several statements give several results. */
function last(result: RawResult | readonly RawResult[]): RawResult {
  return 'command' in result ? result : (result.at(-1) as RawResult);
}

function decodeRows(result: RawResult): SqlRow[] {
  const { columns } = result;
  if (result.length === 0 || columns === undefined || columns === null) return [];
  const decoders = columns.map((column) => decoderOf(column.type));
  return result.map((values) => {
    const row: Record<string, unknown> = {};
    for (let index = 0; index < columns.length; index++) {
      const value = values[index];
      // Both arrays have one entry a column.
      const { name } = columns[index] as { name: string };
      row[name] = value === null || value === undefined ? null : decoders[index]?.(value.toString('utf8'));
    }
    return row;
  });
}
