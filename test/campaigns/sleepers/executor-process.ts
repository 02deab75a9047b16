/** The one executor of the campaign: runs workflows that sleep, and says when a step after a sleep begins. */
import { defineWorkflow, Holdfast, runStep, sleep, workflow } from '../../../src/index.js';
import type { Question, SleeperExecutorOptions, Told } from './messages.js';
import { silentLogger } from '../support/silent-logger.js';

const options = JSON.parse(process.argv[2] ?? '{}') as SleeperExecutorOptions;

function tell(told: Told): void {
  process.send?.(told, () => undefined);
}

const sleeper = defineWorkflow('sleeper', async () => {
  await sleep('1h');
  await runStep('after the sleep', async () => {
    tell({ what: 'fired', workflowId: workflow().workflowId, at: Date.now() });
  });
});

const launchedAt = performance.now();
const holdfast = await Holdfast.launch({
  workflows: [sleeper],
  database: options.database,
  suspendAfter: '100ms',
  logger: silentLogger,
});
tell({ what: 'launched', tookMs: performance.now() - launchedAt });

process.on('message', (question: Question) => {
  switch (question.do) {
    case 'start':
      holdfast.start(sleeper, { workflowId: question.workflowId }).then(
        () => {
          tell({ what: 'started' });
        },
        (error: unknown) => {
          console.error(error);
          process.exit(1);
        },
      );
      break;
    case 'memory': {
      // Without, what is measured is when the last collection happened to be.
      globalThis.gc?.();
      const { rss, heapUsed } = process.memoryUsage();
      tell({ what: 'memory', rssBytes: rss, heapBytes: heapUsed });
      break;
    }
  }
});
// Without the campaign nobody needs this process.
process.on('disconnect', () => process.exit(0));
