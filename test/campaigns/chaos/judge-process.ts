/** The judges: a process of its own, which has seen nothing of the run, and has no proxy between itself and the server. */
import { copyFile } from 'node:fs/promises';
import { HoldfastClient } from '../../../src/index.js';
import { readRecord } from './evidence.js';
import type { Case } from './judge-apart.js';
import { judgeChaos } from './judges/index.js';
import { readLedger } from './ledger/ledger.js';

const given = JSON.parse(process.argv[2] ?? '{}') as Case;
if (given.keep !== undefined) await copyFile(given.ledger, given.keep);
const entries = readLedger(given.ledger);
const record = await readRecord(given.database);

// A fresh handle of each has to say what is on record.
const client = await HoldfastClient.connect({ database: given.database });
const fresh = new Map<string, string>();
const ended = record.statuses.filter(({ status }) => status === 'SUCCESS');
const PAGE = 500;
for (let from = 0; from < ended.length; from += PAGE) {
  await Promise.all(
    ended.slice(from, from + PAGE).map(async ({ workflow_id: workflowId }) => {
      fresh.set(workflowId, JSON.stringify(await client.handle(workflowId).result()));
    }),
  );
}
await client.close();

process.send?.(judgeChaos({ ...given, entries, record, fresh }));
process.disconnect();
