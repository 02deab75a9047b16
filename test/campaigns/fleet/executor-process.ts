/**
 * An executor of the campaign. Its step bodies report to the ledger when they begin and when they end; besides, it starts a
 * pulse workflow of its own again and again, so that a standstill shows.
 */
import { randomUUID } from 'node:crypto';

import { defineWorkflow, Holdfast, runStep, step, workflow } from '../../../src/index.js';
import { pause } from '../support/abortable-pause.js';
import { Ledger } from './ledger.js';
import type { Command, ExecutorOptions, Job, Reply } from './messages.js';
import { silentLogger } from '../support/silent-logger.js';

const PULSE_INTERVAL_MS = 200;
/** With so many pulses unanswered, no more are started: they would only measure themselves. */
const MAX_PULSES = 5;

const options = JSON.parse(process.argv[2] ?? '{}') as ExecutorOptions;
const ledger = new Ledger(options.ledger);

function body({ workflowId, queue, key, bodyMs }: Job, index: number): Promise<string> {
  return runStep(`step ${String(index)}`, async () => {
    const run = randomUUID();
    const { signal } = step();
    ledger.tell({ what: 'begin', run, workflowId, queue, key, step: index, epoch: workflow().epoch });
    const isAborted = await pause(bodyMs, signal);
    ledger.tell({ what: 'end', run, how: isAborted ? 'aborted' : 'done' });
    return run;
  });
}

/** Its result are the runs of its bodies whose results were recorded. */
const job = defineWorkflow('job', async (order: Job) => {
  const runs: string[] = [];
  for (let index = 0; index < order.steps; index++) runs.push(await body(order, index));
  return runs;
});

const holdfast = await Holdfast.launch({
  workflows: [job],
  database: options.database,
  executorId: options.executorId,
  lease: options.leaseMs,
  maxConnections: 5,
  logger: silentLogger,
});
ledger.tell({ what: 'launched', executorId: options.executorId });
process.send?.({ id: 0 } satisfies Reply);

let pulses = 0;
let openPulses = 0;
const pulse = setInterval(() => {
  if (openPulses >= MAX_PULSES) return;
  const workflowId = `pulse ${String(process.pid)} ${String(pulses++)}`;
  openPulses += 1;
  holdfast
    .start(job, { workflowId }, { workflowId, queue: '', key: '', steps: 1, bodyMs: 1 })
    .then((handle) => handle.result())
    .catch((error: unknown) => {
      console.error(error);
    })
    .finally(() => {
      openPulses -= 1;
    });
}, PULSE_INTERVAL_MS);

async function obey(command: Command): Promise<unknown> {
  switch (command.do) {
    case 'start':
      await holdfast.start(job, { workflowId: command.job.workflowId }, command.job);
      return undefined;
    case 'outcomes':
      return Promise.all(command.workflowIds.map((workflowId) => holdfast.handle(workflowId).result()));
    case 'calm':
      clearInterval(pulse);
      return undefined;
  }
}

process.on('message', (command: Command) => {
  const answer = (reply: Omit<Reply, 'id'>): void => {
    process.send?.({ id: command.id, ...reply } satisfies Reply, () => undefined);
  };
  obey(command).then(
    (value) => {
      answer({ value });
    },
    (error: unknown) => {
      answer({ error: String(error) });
    },
  );
});
// Without the campaign nobody needs this process.
process.on('disconnect', () => process.exit(0));
