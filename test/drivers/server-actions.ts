import pg from 'pg';

/** A connection of the test's own, past every proxy, to look at the server and to act on it. */
export class ServerActions {
  readonly #client: pg.Client;

  private constructor(client: pg.Client) {
    this.#client = client;
  }

  static async connect(connectionString: string): Promise<ServerActions> {
    const client = new pg.Client({ connectionString, application_name: 'test-observer' });
    await client.connect();
    return new ServerActions(client);
  }

  async rows(text: string, values: unknown[] = []): Promise<Record<string, unknown>[]> {
    return (await this.#client.query<Record<string, unknown>>(text, values)).rows;
  }

  /** Ends every other session of the database; returns how many there were. */
  async killOthers(): Promise<number> {
    const killed = await this.rows(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'`);
    return killed.length;
  }

  async countOthers(): Promise<number> {
    const rows = await this.rows(`SELECT count(*)::int4 AS n FROM pg_stat_activity
      WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'`);
    return Number(rows[0]?.['n']);
  }

  async close(): Promise<void> {
    await this.#client.end();
  }
}

const POLL_INTERVAL_MS = 10;

/** Waits until `condition` returns true; says what it waited for when it never does. */
export async function until(
  what: string,
  condition: () => boolean | Promise<boolean>,
  timeoutMs = 20_000,
): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`not within ${timeoutMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, POLL_INTERVAL_MS));
  }
}
