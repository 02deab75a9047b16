/** An executor of an earlier release, compiled with its sources: what every release has is all that it uses. */
import { Holdfast } from '../../../../src/index.js';
import { SeededRandom } from '../../support/seeded-random.js';
import { LedgerClient } from '../ledger/ledger-client.js';
import { defineCoreWorkload } from './core-workload.js';
import type { Command, ProgramOptions } from './messages.js';
import { obeySupervisor } from './obey.js';
import { toldCall, toldOutcome, watchProcess } from './told.js';
import { silentLogger } from '../../support/silent-logger.js';

const options = JSON.parse(process.argv[2] ?? '{}') as ProgramOptions;
const ledger = await LedgerClient.open(options.ledgerPort, options.who);
watchProcess(ledger);
const workload = defineCoreWorkload(ledger, options);
const holdfast = await Holdfast.launch({
  workflows: Object.values(workload),
  database: options.database,
  migrate: false,
  executorId: options.executorId,
  appVersion: 'chaos',
  lease: options.leaseMs,
  pollInterval: options.pollMs,
  maxConnections: options.maxConnections,
  logger: silentLogger,
});
await ledger.tell({ what: 'process', process: options.who, happened: 'launched' });

const random = new SeededRandom(options.seed);
const kinds = Object.keys(workload) as (keyof typeof workload)[];
let isCalm = false;
let started = 0;

async function keepBusy(): Promise<void> {
  while (!isCalm) {
    const kind = random.pick(kinds) ?? 'short';
    const workflowId = `${kind} ${options.who} ${String(started++)}`;
    const run = workload[kind] as () => Promise<unknown>;
    const call = { kind: 'start', workflowId, value: '[]' } as const;
    const handle = await toldCall(ledger, call, () => holdfast.start(run, { workflowId }));
    if (handle.how === 'ok') await toldOutcome(ledger, workflowId, () => handle.result.result());
  }
}

function obey(command: Command): Promise<unknown> {
  isCalm ||= command.do === 'calm';
  return Promise.resolve(undefined);
}

obeySupervisor(obey);
for (let index = 0; index < options.outstanding; index++) void keepBusy();
