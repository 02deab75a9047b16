/** An executor of the campaign, which also starts workflows of its own and waits for them. */
import { moveClock } from './moved-clock.js';
import { Holdfast } from '../../../../src/index.js';
import { LedgerClient } from '../ledger/ledger-client.js';
import { SeededRandom } from '../../support/seeded-random.js';
import { CLIENT_KINDS, drawKind, NO_QUEUE, OUTBOX_TOPIC, QUEUE } from '../traffic.js';
import type { Command, ProgramOptions } from './messages.js';
import { obeySupervisor } from './obey.js';
import { toldCall, toldOutcome, watchProcess } from './told.js';
import { defineWorkload } from './workload.js';
import { silentLogger } from '../../support/silent-logger.js';

/** Unloaded sooner than the longest sleep ends. */
const SUSPEND_AFTER_MS = 300;
/** What a process had taken for delivery when it died is delivered by another one after this. */
const DELIVERY_MS = 1_000;
const RETRY_MS = 20;

const options = JSON.parse(process.argv[2] ?? '{}') as ProgramOptions;
const ledger = await LedgerClient.open(options.ledgerPort, options.who);
watchProcess(ledger);
const workload = defineWorkload(ledger, options);
const holdfast = await Holdfast.launch({
  workflows: Object.values(workload),
  queues: [QUEUE],
  database: options.database,
  migrate: false,
  executorId: options.executorId,
  appVersion: 'chaos',
  lease: options.leaseMs,
  pollInterval: options.pollMs,
  maxConnections: options.maxConnections,
  suspendAfter: SUSPEND_AFTER_MS,
  logger: silentLogger,
  outbox: {
    handlers: {
      [OUTBOX_TOPIC]: async ({ id, workflowId, payload }) => {
        await ledger.tell({ what: 'delivered', eventId: id, workflowId: workflowId ?? '', payload: String(payload) });
      },
    },
    retries: { maxAttempts: 1_000, initialDelay: 50, maxDelay: 500 },
    timeout: DELIVERY_MS,
  },
});
await ledger.tell({ what: 'process', process: options.who, happened: 'launched' });

const random = new SeededRandom(options.seed);
let isCalm = false;
let started = 0;

/** Keeps one workflow after the other under way. */
async function keepBusy(): Promise<void> {
  while (!isCalm) {
    const kind = drawKind(options.traffic, (one) => !CLIENT_KINDS.includes(one), random.next());
    if (kind === undefined) return;
    const workflowId = `${kind} ${options.who} ${String(started++)}`;
    const run = workload[kind] as () => Promise<unknown>;
    const call = { kind: 'start', workflowId, value: '[]' } as const;
    const handle = await toldCall(ledger, call, () => holdfast.start(run, { workflowId }));
    if (handle.how === 'ok') await toldOutcome(ledger, workflowId, () => handle.result.result());
    else await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
}

const timersAtLaunch = timers();

function timers(): number {
  return process.getActiveResourcesInfo().filter((resource) => resource === 'Timeout').length;
}

async function report(): Promise<void> {
  const { running, executions, versionConflicts } = holdfast.metrics();
  await ledger.tell({
    what: 'report',
    report: { running, timers: timers(), timersAtLaunch, parked: executions.parked, conflicts: versionConflicts },
  });
}

async function obey(command: Command): Promise<unknown> {
  switch (command.do) {
    case 'calm':
      isCalm = true;
      return undefined;
    case 'report':
      return report();
    case 'observe':
      return Promise.all(
        command.workflowIds.map((workflowId) =>
          toldOutcome(ledger, workflowId, () => holdfast.handle(workflowId).result()),
        ),
      );
    case 'block': {
      const until = performance.now() + command.ms;
      while (performance.now() < until);
      return undefined;
    }
    case 'clock':
      moveClock(command.offsetMs);
      return undefined;
    case 'storm': {
      const key = `${NO_QUEUE} of ${options.who}`;
      const call = { kind: 'start', workflowId: command.workflowId, value: JSON.stringify([key]) } as const;
      const start = { workflowId: command.workflowId };
      const handle = await toldCall(ledger, call, () => holdfast.start(workload.queued, start, key));
      if (handle.how === 'ok') void toldOutcome(ledger, command.workflowId, () => handle.result.result());
      return handle.how === 'ok' ? 1 : 0;
    }
    case 'control':
      throw new Error('That is for the client.');
  }
}

obeySupervisor(obey);
for (let index = 0; index < options.outstanding; index++) void keepBusy();
