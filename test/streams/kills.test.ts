import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { HoldfastClient } from '../../src/index.js';
import { Workers } from '../processes/support/worker.js';
import { createBed, silentLogger, waitUntil, type Bed } from '../support/launch.js';
import { startPgProxyFor, type PgProxy } from '../support/pg-proxy.js';
import { values } from './support/read.js';

// A process is killed at every write of a workflow that streams, and another one recovers it, while a third one reads.

let bed: Bed;
let workers: Workers;
let proxy: PgProxy;
let client: HoldfastClient;
beforeAll(async () => {
  bed = await createBed();
  workers = await Workers.prepare();
  proxy = await startPgProxyFor(bed.database.url);
  client = await HoldfastClient.connect({
    database: bed.database.url,
    logger: silentLogger,
    pollInterval: 50,
    migrate: true,
  });
});
afterEach(() => workers.killAll());
afterAll(async () => {
  await client.close();
  await workers.close();
  await proxy.close();
  await bed.close();
});

/** The entries of `streaming`, one statement each. */
const ENTRIES = ['call', 'step 0', 'step 1', 'end'];

test.each(ENTRIES.flatMap((entry, index) => [['before', entry, index] as const, ['after', entry, index] as const]))(
  'C46 killed %s the commit of "%s": the reader gets every entry once, in order',
  async (when, entry, index) => {
    const workflowId = `${when} ${entry}`;
    const victim = await workers.launch({
      database: proxy.connectionString(bed.database.url),
      executorId: `killed ${workflowId}`,
    });
    let seen = 0;
    const held = proxy.arm(
      when === 'before' ? { do: 'black-hole' } : { do: 'black-hole', afterForwarding: true },
      ({ sql }) => sql.includes('stream_batch') && seen++ === index,
    );
    await victim.start('streaming', workflowId);
    const reading = values(client.readStream(workflowId, 's'));
    await held.happened;
    await waitUntil(async () => {
      const { rowCount } = await bed.sql.query('SELECT FROM holdfast.stream_entry WHERE workflow_id = $1', [
        workflowId,
      ]);
      return rowCount === (when === 'before' ? index : index + 1);
    }, 'the entries are as they were when the process died');
    await victim.kill();
    await bed.expireLease(`killed ${workflowId}`);
    const survivor = await workers.launch({
      database: bed.database.url,
      executorId: `survivor ${workflowId}`,
      pollInterval: 20,
    });
    await survivor.result(workflowId);
    expect(await reading).toEqual(ENTRIES);
  },
);
