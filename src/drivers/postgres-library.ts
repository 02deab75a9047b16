import type { Socket } from 'node:net';

import { DriverConfigurationError } from '../errors/database-errors.js';
import type { ServerNotice } from './session.js';
import type { TypeRegistry } from './postgres-array-types.js';

/**
 * The part of porsager's `postgres` that the driver uses, by shape: the package is an optional peer, so its types cannot
 * be part of ours.
 */
export interface PostgresSql extends PostgresStatements {
  begin<Result>(modes: string, body: (transaction: PostgresStatements) => Promise<Result>): Promise<Result>;
  end(options: { readonly timeout: number }): Promise<void>;
  readonly options: TypeRegistry & { prepare: boolean };
}

/** An `sql` of the caller's, by what tells it from other things. Its type depends on the types that it was made with. */
export interface CallersSql {
  readonly options: object;
  readonly begin: (...args: never[]) => unknown;
  readonly unsafe: (...args: never[]) => unknown;
}

/** What a connection and a transaction have in common. */
export interface PostgresStatements {
  unsafe(text: string, parameters: unknown[], options: QueryOptions): Query;
  /** Binds a value with a type of the caller's choice. */
  typed(value: unknown, oid: number): unknown;
}

interface QueryOptions {
  readonly prepare: boolean;
  readonly simple: boolean;
  /** Called with the connection that the statement was written to. Not documented; it is how `begin` gets hold of one. */
  readonly onexecute?: (connection: { readonly terminate?: () => void }) => boolean;
}

interface Query extends Promise<RawResult> {
  /** Rows as arrays of the bytes that the server sent. */
  raw(): Promise<RawResult | readonly RawResult[]>;
}

/** A result in raw form: an array of rows with properties. */
export interface RawResult extends ReadonlyArray<readonly (Buffer | null)[]> {
  readonly columns?: readonly { readonly name: string; readonly type: number }[] | null;
  readonly command: string;
  /** The process ID that came with the cancellation key. */
  readonly state: { readonly pid: number | null };
}

/** Settings as the library keeps them once it has read the connection string and the environment. */
export interface PostgresSettings {
  readonly host: readonly string[];
  readonly port: readonly number[];
  readonly path: string | false;
  readonly max: number;
  readonly socket?: ((settings: PostgresSettings) => Socket | Promise<Socket>) | undefined;
  readonly parsers: object;
  readonly serializers: object;
  readonly fetch_types: boolean;
  readonly transform: {
    readonly column: { readonly from?: unknown };
    readonly row: { readonly from?: unknown };
  };
}

/** Settings that we give. */
export interface PostgresOptions {
  readonly fetch_types: false;
  readonly max: 1;
  readonly idle_timeout: null;
  readonly max_lifetime: null;
  readonly connect_timeout: number;
  readonly keep_alive: number;
  readonly socket: (settings: PostgresSettings) => Promise<Socket>;
  readonly onclose: () => void;
  readonly onnotice: (notice: ServerNotice) => void;
  readonly onnotify?: (channel: string, payload: string) => void;
}

export interface PostgresLibrary {
  (connectionString: string, options: PostgresOptions & { connection: object }): PostgresSql;
  (settings: Omit<PostgresSettings, 'fetch_types'> & PostgresOptions): PostgresSql;
}

/** Loads `postgres`, only when it is needed. */
export async function loadPostgres(): Promise<PostgresLibrary> {
  try {
    return (await import('postgres')).default as unknown as PostgresLibrary;
  } catch (cause) {
    throw new DriverConfigurationError("The package 'postgres' could not be loaded. Install it: npm install postgres", {
      cause,
    });
  }
}
