import type { Duplex } from 'node:stream';

import { DriverConfigurationError } from '../errors/database-errors.js';
import type { PgLastStatement } from './pg-last-statement.js';
import type { ServerNotice } from './session.js';
import type { TextDecoder } from './sql-values.js';

/**
 * The part of `pg` that the driver uses, by shape: the package is an optional peer, so neither its types nor its classes
 * can be part of ours, and an application may hold a pool of another copy of it.
 */
export interface PgPool {
  connect(callback: (error: Error | undefined, client: PgClient | undefined) => void): void;
  readonly totalCount: number;
  /** From the call of `end` on. A pool that is none of the library's (a wrapper) may not have it. */
  readonly ending?: boolean;
  /** Where the library keeps its settings. */
  readonly options?: { readonly max?: number };
  on(event: 'error' | 'remove', listener: () => void): unknown;
  off(event: 'error' | 'remove', listener: () => void): unknown;
  listenerCount(event: 'error'): number;
}

export interface PgClient extends PgConnection {
  release(destroyBecause?: Error | boolean): void;
}

/** A single connection. */
export interface PgConnection {
  readonly processID?: number | null;
  query(
    config: PgStatement,
    callback: (error: Error | null | undefined, result: PgResult | readonly PgResult[]) => void,
  ): unknown;
  /** Sends what is a query of its own kind. */
  query(query: PgLastStatement): unknown;
  on(event: 'error' | 'end', listener: (error: Error) => void): unknown;
  on(event: 'notice', listener: (notice: ServerNotice) => void): unknown;
  on(event: 'notification', listener: (message: { channel: string; payload?: string | undefined }) => void): unknown;
  off(event: 'error', listener: (error: Error) => void): unknown;
  off(event: 'notice', listener: (notice: ServerNotice) => void): unknown;
}

export interface PgStatement {
  readonly text: string;
  readonly name?: string | undefined;
  readonly values?: (string | number | boolean | null | Uint8Array)[] | undefined;
  readonly types: { readonly getTypeParser: (oid: number) => TextDecoder };
}

export interface PgResult {
  readonly command: string;
  readonly rows: Record<string, unknown>[];
}

/** What we pass when we open connections ourselves. */
export interface PgConnectionConfig {
  readonly connectionString?: string;
  readonly password?: unknown;
  readonly application_name?: string;
  readonly connectionTimeoutMillis?: number;
  readonly keepAlive?: boolean;
  readonly keepAliveInitialDelayMillis?: number;
  readonly stream?: () => Duplex;
}

export type PgClientClass = new (
  config: PgConnectionConfig,
) => PgConnection & { connect(): Promise<unknown>; end(): Promise<void> };

export interface PgLibrary {
  readonly Client: PgClientClass;
}

/** Loads `pg`, only when it is needed. */
export async function loadPg(): Promise<PgLibrary> {
  try {
    return (await import('pg')).default as unknown as PgLibrary;
  } catch (cause) {
    throw new DriverConfigurationError("The package 'pg' could not be loaded. Install it: npm install pg", { cause });
  }
}
