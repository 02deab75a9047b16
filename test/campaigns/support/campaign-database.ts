import { randomBytes } from 'node:crypto';

import pg from 'pg';

import { startTestServer } from '../../support/test-server.js';

/** An empty database on a server of the campaign's own, or on the one that `TEST_DATABASE_URL` names. */
export interface CampaignDatabase {
  /** What server it is. */
  readonly source: string;
  readonly url: string;
  close(): Promise<void>;
}

export async function openCampaignDatabase(environment: NodeJS.ProcessEnv): Promise<CampaignDatabase> {
  const server = await startTestServer(environment);
  try {
    const name = `campaign_${randomBytes(8).toString('hex')}`;
    await execute(server.connectionString, `CREATE DATABASE ${name}`);
    const url = new URL(server.connectionString);
    url.pathname = `/${name}`;
    return {
      source: server.source,
      url: url.href,
      close: async () => {
        await execute(server.connectionString, `DROP DATABASE ${name} WITH (FORCE)`);
        await server.stop();
      },
    };
  } catch (error) {
    await server.stop();
    throw error;
  }
}

async function execute(serverUrl: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: serverUrl });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}
