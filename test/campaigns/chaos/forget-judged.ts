import pg from 'pg';
import { HoldfastClient } from '../../../src/index.js';
import { silentLogger } from '../support/silent-logger.js';

const AT_ONCE = 500;

/** Deletes what the judges have seen, as an operator would, and then what the audit noted of it. */
export async function forgetJudged(database: string): Promise<void> {
  const sql = new pg.Client({ connectionString: database });
  await sql.connect();
  const client = await HoldfastClient.connect({ database, logger: silentLogger });
  try {
    const { rows } = await sql.query<{ workflow_id: string }>('SELECT workflow_id FROM holdfast.workflow_status');
    const workflowIds = rows.map(({ workflow_id }) => workflow_id);
    for (let from = 0; from < workflowIds.length; from += AT_ONCE) {
      const results = await client.admin.delete(workflowIds.slice(from, from + AT_ONCE), { actor: 'chaos' });
      const refused = results.find((each) => !each.ok);
      if (refused !== undefined) throw refused.error;
    }
    await sql.query('TRUNCATE chaos.change, chaos.written, chaos.payment');
    await sql.query('UPDATE chaos.account SET cents = 0');
  } finally {
    await client.close();
    await sql.end();
  }
}
