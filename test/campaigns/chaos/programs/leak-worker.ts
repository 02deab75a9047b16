/** One executor that runs many workflows, and says after each part of them how large its heap is. Needs --expose-gc. */
import { defineWorkflow, Holdfast, runStep, sleep } from '../../../../src/index.js';
import { HEAP_PARTS, type LeakOptions } from '../leaks.js';
import { silentLogger } from '../../support/silent-logger.js';

const CONCURRENT = 200;

const { database, workflows } = JSON.parse(process.argv[2] ?? '{}') as LeakOptions;
const child = defineWorkflow('child', () => runStep('step', () => Promise.resolve('done')));
const parent = defineWorkflow('parent', async (number: number) => {
  const first = await runStep('step', () => Promise.resolve(number));
  await Promise.all([runStep('a', () => Promise.resolve(first)), runStep('b', () => Promise.resolve(first))]);
  // Some wait, and some fail, since that leaves the ordinary path.
  if (number % 10 === 0) await sleep(5);
  if (number % 10 === 1) await child();
  if (number % 10 === 2) throw new Error('it was to fail');
  return first;
});

const holdfast = await Holdfast.launch({
  workflows: [child, parent],
  database,
  logger: silentLogger,
});

let next = 0;
async function keepBusy(until: number): Promise<void> {
  while (next < until) {
    const number = next++;
    const handle = await holdfast.start(parent, { workflowId: `leak ${String(number)}` }, number);
    await handle.result().catch(() => undefined);
  }
}

for (let part = 1; part <= HEAP_PARTS; part++) {
  const until = Math.round((workflows * part) / HEAP_PARTS);
  await Promise.all(Array.from({ length: CONCURRENT }, () => keepBusy(until)));
  // What is released with a finaliser needs a second turn.
  for (let turn = 0; turn < 3; turn++) {
    await new Promise((resolve) => setTimeout(resolve, 100));
    globalThis.gc?.();
  }
  process.send?.({ workflows: until, heapBytes: process.memoryUsage().heapUsed });
}
await holdfast.close();
process.disconnect();
