import { parseArgs } from 'node:util';

import pg from 'pg';

import { defineWorkflow, Holdfast } from '../../../src/index.js';
import { silentLogger, waitUntil } from '../../support/launch.js';
import { openCampaignDatabase } from '../support/campaign-database.js';

const USAGE = `Usage: npm run campaign:tenants -- [options]

  --count <n>   workflows of the large tenant (default 100000); the small one has 10, enqueued after them
  --help        this text

The server is TEST_DATABASE_URL if set, Debian's with HOLDFAST_TEST_POSTGRES=15, else the embedded PostgreSQL.
Exit code: 0 when the ten are done within the first 1 % of the time, else 1.`;

/** Part of the whole time in which the small tenant has to be done. */
const BOUND = 0.01;
const SMALL = 10;
const LONGEST_MS = 3_600_000;

const { values } = parseArgs({
  options: { count: { type: 'string', default: '100000' }, help: { type: 'boolean', default: false } },
});
if (values.help) console.log(USAGE);
else process.exitCode = await main(Number(values.count));

async function main(count: number): Promise<number> {
  const database = await openCampaignDatabase(process.env);
  const sql = new pg.Client({ connectionString: database.url });
  try {
    await sql.connect();
    const done = { large: 0, small: 0 };
    let smallDoneAt = 0;
    const work = defineWorkflow('work', (tenant: 'large' | 'small') => {
      done[tenant] += 1;
      if (done.small === SMALL && smallDoneAt === 0) smallDoneAt = performance.now();
      return Promise.resolve();
    });
    await using holdfast = await Holdfast.launch({
      database: database.url,
      logger: silentLogger,
      workflows: [work],
      queues: [{ name: 'shared', concurrency: 50 }],
    });
    await holdfast.queues.pause('shared');
    for (const [tenant, items] of [
      ['large', count],
      ['small', SMALL],
    ] as const) {
      await sql.query(
        `SELECT count(holdfast.enqueue_workflow('work', jsonb_build_array($1::text), 'shared', p_key => $1::text)) FROM generate_series(1, $2::int)`,
        [tenant, items],
      );
    }
    console.log(`${String(count)} and ${String(SMALL)} workflows wait, ${database.source}`);
    const startedAt = performance.now();
    await holdfast.queues.resume('shared');
    await waitUntil(() => done.large >= count && done.small >= SMALL, 'all are done', LONGEST_MS);
    const wholeMs = performance.now() - startedAt;
    const smallMs = smallDoneAt - startedAt;
    const share = smallMs / wholeMs;
    console.log(
      `The ten were done after ${smallMs.toFixed(0)} of ${wholeMs.toFixed(0)} ms: ${(share * 100).toFixed(2)} % of the time.`,
    );
    return share <= BOUND ? 0 : 1;
  } finally {
    await sql.end();
    await database.close();
  }
}
