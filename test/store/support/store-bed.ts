import { setTimeout as sleep } from 'node:timers/promises';
import type { Driver } from '../../../src/drivers/driver.js';
import { createPgDriver } from '../../../src/drivers/pg-driver.js';
import { createPostgresDriver } from '../../../src/drivers/postgres-driver.js';
import type { AdminStore } from '../../../src/store/admin-store.js';
import { VirtualClock, type Clock } from '../../../src/store/memory/clock.js';
import { MemoryAdminStore } from '../../../src/store/memory/memory-admin-store.js';
import { MemoryDatabase } from '../../../src/store/memory/memory-database.js';
import { MemoryMessageStore } from '../../../src/store/memory/memory-message-store.js';
import { MemoryOutboxStore } from '../../../src/store/memory/memory-outbox-store.js';
import { MemoryQueryStore } from '../../../src/store/memory/memory-query-store.js';
import { MemoryQueueStore } from '../../../src/store/memory/memory-queue-store.js';
import { MemoryStore } from '../../../src/store/memory/memory-store.js';
import type { MessageStore } from '../../../src/store/message-store.js';
import { migrateSchema } from '../../../src/store/postgres/migrate.js';
import { PostgresAdminStore } from '../../../src/store/postgres/postgres-admin-store.js';
import { PostgresMessageStore } from '../../../src/store/postgres/postgres-message-store.js';
import { PostgresOutboxStore } from '../../../src/store/postgres/postgres-outbox-store.js';
import { PostgresQueryStore } from '../../../src/store/postgres/postgres-query-store.js';
import { PostgresQueueStore } from '../../../src/store/postgres/postgres-queue-store.js';
import { PostgresStore } from '../../../src/store/postgres/postgres-store.js';
import type { OutboxStore } from '../../../src/store/outbox-store.js';
import type { QueryStore } from '../../../src/store/query-store.js';
import type { QueueStore } from '../../../src/store/queue-store.js';
import type { Store } from '../../../src/store/store.js';
import { createTestDatabase } from '../../support/database.js';

/** Where the clock of every bed begins, in milliseconds since 1970. */
export const START_MS = Date.UTC(2030, 0, 1);

/** What one process has to speak with the record. */
export interface Stores {
  readonly store: Store;
  readonly admin: AdminStore;
  readonly queues: QueueStore;
  readonly messages: MessageStore;
  readonly queries: QueryStore;
  readonly outbox: OutboxStore;
}

/** An implementation of the stores, on a record whose clock only tests move. */
export interface StoreBed extends Stores {
  /** Of the record's clock. */
  now(): number;
  advance(ms: number): Promise<void>;
  /** Forgets everything, and begins again at {@link START_MS}. */
  reset(): Promise<void>;
  close(): Promise<void>;
}

export interface StoreKind {
  readonly label: string;
  open(): Promise<StoreBed>;
}

export const MEMORY: StoreKind = { label: 'memory', open: () => Promise.resolve(new MemoryBed()) };

export const POSTGRESQL: StoreKind = {
  label: 'PostgreSQL by pg',
  open: () => PostgresBed.open((connectionString) => createPgDriver({ connectionString })),
};

export const STORE_KINDS: readonly StoreKind[] = [
  MEMORY,
  POSTGRESQL,
  {
    label: 'PostgreSQL by postgres',
    open: () => PostgresBed.open((connectionString) => createPostgresDriver({ connectionString })),
  },
];

/** Moments by the test's clock; pauses between tries as long as they are, as PostgreSQL's store has them. */
class TestClock implements Clock {
  readonly #virtual = new VirtualClock(START_MS);

  now(): number {
    return this.#virtual.now();
  }

  advance(ms: number): void {
    this.#virtual.advance(ms);
  }

  async pause(ms: number, signal: AbortSignal): Promise<void> {
    await sleep(ms, undefined, { signal }).catch(() => undefined);
  }
}

export class MemoryBed implements StoreBed {
  #clock!: TestClock;
  database!: MemoryDatabase;
  store!: Store;
  admin!: AdminStore;
  queues!: QueueStore;
  messages!: MessageStore;
  queries!: QueryStore;
  outbox!: OutboxStore;

  constructor() {
    this.#begin();
  }

  now(): number {
    return this.#clock.now();
  }

  advance(ms: number): Promise<void> {
    this.#clock.advance(ms);
    return Promise.resolve();
  }

  reset(): Promise<void> {
    this.#begin();
    return Promise.resolve();
  }

  async close(): Promise<void> {
    await this.store.close();
  }

  #begin(): void {
    this.#clock = new TestClock();
    const database = new MemoryDatabase({ clock: this.#clock });
    this.database = database;
    this.store = new MemoryStore({ database });
    this.admin = new MemoryAdminStore({ database });
    this.queues = new MemoryQueueStore({ database });
    this.messages = new MemoryMessageStore({ database });
    this.queries = new MemoryQueryStore({ database });
    this.outbox = new MemoryOutboxStore({ database });
  }
}

const SCHEMA = 'holdfast';
/** Tables that hold what is there without any workflow. */
const KEPT_TABLES = ['migration', 'test_clock'];

class PostgresBed implements StoreBed {
  readonly #driver: Driver;
  readonly #drop: () => Promise<void>;
  readonly store: PostgresStore;
  readonly admin: AdminStore;
  readonly queues: QueueStore;
  readonly messages: MessageStore;
  readonly queries: QueryStore;
  readonly outbox: OutboxStore;
  readonly #truncate: string;
  #now = START_MS;

  private constructor(driver: Driver, drop: () => Promise<void>, tables: readonly string[]) {
    this.#driver = driver;
    this.#drop = drop;
    // For a few rows much faster than TRUNCATE.
    this.#truncate = `WITH ${tables.map((table, index) => `d${String(index)} AS (DELETE FROM "${SCHEMA}"."${table}")`).join(', ')} SELECT`;
    const options = { driver, schema: SCHEMA };
    this.store = new PostgresStore({ ...options, notifications: false });
    this.admin = new PostgresAdminStore(options);
    this.queues = new PostgresQueueStore(options);
    const announce = (workflowId: string): void => {
      this.store.announceMessage(workflowId);
    };
    this.messages = new PostgresMessageStore({ ...options, announce });
    this.queries = new PostgresQueryStore({ ...options, announce });
    this.outbox = new PostgresOutboxStore({
      ...options,
      announce: () => {
        this.store.announceEvents();
      },
    });
  }

  static async open(connect: (connectionString: string) => Promise<Driver>): Promise<PostgresBed> {
    const database = await createTestDatabase();
    const driver = await connect(database.url);
    await migrateSchema(driver, { schema: SCHEMA });
    await driver.query(
      `CREATE TABLE "${SCHEMA}".test_clock (now_at timestamptz NOT NULL);
       INSERT INTO "${SCHEMA}".test_clock VALUES ('epoch'::timestamptz + ${String(START_MS)} * interval '1 ms');
       CREATE OR REPLACE FUNCTION "${SCHEMA}".clock() RETURNS timestamptz LANGUAGE sql VOLATILE
       AS 'SELECT now_at FROM "${SCHEMA}".test_clock'`,
    );
    const rows = await driver.query<{ name: string }>(
      `SELECT tablename AS name FROM pg_tables WHERE schemaname = $1 AND tablename <> ALL ($2::text[])`,
      [SCHEMA, KEPT_TABLES],
    );
    return new PostgresBed(
      driver,
      () => database.drop(),
      rows.map(({ name }) => name),
    );
  }

  now(): number {
    return this.#now;
  }

  async advance(ms: number): Promise<void> {
    this.#now += ms;
    await this.#setClock();
  }

  async reset(): Promise<void> {
    this.#now = START_MS;
    await this.#driver.query(this.#truncate);
    await this.#setClock();
  }

  async close(): Promise<void> {
    await this.store.close();
    await this.admin.close();
    this.queues.close();
    this.messages.close();
    this.queries.close();
    this.outbox.close();
    await this.#driver.close();
    await this.#drop();
  }

  async #setClock(): Promise<void> {
    await this.#driver.query(
      `UPDATE "${SCHEMA}".test_clock SET now_at = 'epoch'::timestamptz + $1::float8 * interval '1 ms'`,
      [this.#now],
    );
  }
}
