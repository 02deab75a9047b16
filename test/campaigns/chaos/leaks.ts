import { fork } from 'node:child_process';
import { once } from 'node:events';
import { HoldfastClient } from '../../../src/index.js';
import { bundle } from '../../support/bundle.js';
import { OwnServer } from '../support/own-server.js';
import { releaseAsked } from '../support/own-server-place.js';
import { verdict, type Verdict } from '../support/verdict.js';

export interface LeakOptions {
  readonly database: string;
  readonly workflows: number;
}

/** The heap after so many workflows, after a full garbage collection. */
export interface HeapSample {
  readonly workflows: number;
  readonly heapBytes: number;
}

export const HEAP_PARTS = 10;
/** What is compiled and cached comes within these; the slope is that of the others. */
const WARM_PARTS = 2;
/** Less than an object of any use: what one workflow leaves behind would be more. */
const MOST_BYTES = 16;

/** Bytes that the heap grew by for each workflow: the slope of the line that fits best. */
export function heapSlope(samples: readonly HeapSample[]): number {
  const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;
  const x = mean(samples.map(({ workflows }) => workflows));
  const y = mean(samples.map(({ heapBytes }) => heapBytes));
  const above = samples.reduce((sum, { workflows, heapBytes }) => sum + (workflows - x) * (heapBytes - y), 0);
  const below = samples.reduce((sum, { workflows }) => sum + (workflows - x) ** 2, 0);
  return above / below;
}

export function judgeHeap(samples: readonly HeapSample[]): Verdict {
  const slope = heapSlope(samples.slice(WARM_PARTS));
  const sizes = samples.map(({ heapBytes }) => (heapBytes / 1024 / 1024).toFixed(2)).join(', ');
  const says = `${String(samples.at(-1)?.workflows ?? 0)} workflows, heap ${sizes} MiB: ${slope.toFixed(1)} bytes a workflow, allowed ${String(MOST_BYTES)}`;
  return verdict('heap', slope > MOST_BYTES ? ['the heap grows'] : [], says);
}

/** Runs many workflows in one executor, on a server of its own, and looks at its heap. */
export async function runLeaks(workflows: number, progress: (text: string) => void): Promise<Verdict> {
  const compiled = await bundle(new URL('./programs/leak-worker.ts', import.meta.url));
  const server = await OwnServer.create({ release: releaseAsked(process.env), settings: { fsync: 'off' } });
  try {
    const client = await HoldfastClient.connect({ database: server.url, migrate: true });
    await client.close();
    const options: LeakOptions = { database: server.url, workflows };
    const child = fork(compiled.program, [JSON.stringify(options)], { execArgv: ['--expose-gc'] });
    const samples: HeapSample[] = [];
    child.on('message', (sample: HeapSample) => {
      samples.push(sample);
      progress(`${String(sample.workflows)} workflows, ${String(Math.round(sample.heapBytes / 1024))} KiB`);
    });
    const [code] = (await once(child, 'exit')) as [number | null];
    if (code !== 0) throw new Error(`The executor ended with ${String(code)}.`);
    return judgeHeap(samples);
  } finally {
    await server.close();
    await compiled.remove();
  }
}
