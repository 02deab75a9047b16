import pg from 'pg';
import type { Arena } from './fault.js';
import { pause } from '../support/abortable-pause.js';

/** A connection that is made anew when it was lost: the server may be restarted at any moment. */
export class PatientSql {
  readonly #url: string;
  readonly #patienceMs: number;
  #client: pg.Client | undefined;

  constructor(url: string, patienceMs = 60_000) {
    this.#url = url;
    this.#patienceMs = patienceMs;
  }

  /** Repeats what gets no answer: for statements that may run twice. */
  async query<Row extends pg.QueryResultRow>(statement: string, parameters: readonly unknown[] = []): Promise<Row[]> {
    const deadline = performance.now() + this.#patienceMs;
    for (;;) {
      try {
        const client = (this.#client ??= await this.#connect());
        return (await client.query<Row>(statement, [...parameters])).rows;
      } catch (error) {
        if (error instanceof pg.DatabaseError && !/^(57|08|53)/.test(error.code ?? '')) throw error;
        await this.close();
        if (performance.now() > deadline) throw error;
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    }
  }

  async close(): Promise<void> {
    const client = this.#client;
    this.#client = undefined;
    await client?.end().catch(() => undefined);
  }

  async #connect(): Promise<pg.Client> {
    const client = new pg.Client({
      connectionString: this.#url,
      application_name: 'chaos supervisor',
      connectionTimeoutMillis: 5_000,
    });
    client.on('error', () => undefined);
    await client.connect();
    return client;
  }
}

/** Waits so long, or until the signal fires. @returns whether it has not */
export async function pauseUntil(signal: AbortSignal, ms: number): Promise<boolean> {
  return !(await pause(ms, signal));
}

/** Resolves when the faults are over. */
export function untilOver({ signal }: Arena): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    signal.addEventListener(
      'abort',
      () => {
        resolve();
      },
      { once: true },
    );
  });
}
