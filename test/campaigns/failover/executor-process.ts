/** An executor of the campaign, which starts workflows of its own besides, and hears of the outcomes of all. */
import postgres from 'postgres';
import { Holdfast } from '../../../src/index.js';
import { hear, makeJourney, urge } from './journey.js';
import { Ledger } from './ledger.js';
import type { ExecutorOptions, FromExecutor, ToExecutor } from './messages.js';
import { silentLogger } from '../support/silent-logger.js';

const options = JSON.parse(process.argv[2] ?? '{}') as ExecutorOptions;
const ledger = new Ledger(options.ledger, options.executorId);
const journey = makeJourney(ledger);

const holdfast = await Holdfast.launch({
  workflows: [journey],
  database: options.library === 'pg' ? options.database : postgres(options.database),
  queues: [{ name: 'line' }],
  executorId: options.executorId,
  lease: options.leaseMs,
  maxConnections: 6,
  maxConcurrent: 100,
  pollInterval: 200,
  launchTimeout: '2m',
  logger: silentLogger,
});

const underWay = new Set<Promise<void>>();
let started = 0;

async function begin(): Promise<void> {
  const workflowId = `${options.executorId} ${String(started++)}`;
  const input = `input of ${workflowId}`;
  await holdfast.start(journey, { workflowId }, input);
  ledger.tell({ what: 'started', workflowId, input });
  // Not awaited by `calm`: it may take as long as the workflow is somewhere else.
  void hear(holdfast, workflowId, ledger);
  await urge(holdfast, workflowId, ledger);
}

const starts = setInterval(() => {
  const start = begin().catch((error: unknown) => {
    ledger.tell({ what: 'wrong', workflowId: `a start of ${options.executorId}`, error: String(error) });
  });
  underWay.add(start);
  void start.finally(() => underWay.delete(start));
}, options.startEveryMs);

function tell(message: FromExecutor): void {
  process.send?.(message, () => undefined);
}

process.on('message', (message: ToExecutor) => {
  switch (message.do) {
    case 'hear':
      for (const workflowId of message.workflowIds) void hear(holdfast, workflowId, ledger);
      return;
    case 'calm':
      clearInterval(starts);
      void Promise.all(underWay).then(() => {
        tell({ what: 'calm' });
      });
  }
});
// Without the campaign nobody needs this process.
process.on('disconnect', () => process.exit(0));
tell({ what: 'launched' });
