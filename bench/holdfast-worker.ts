import { existsSync } from 'node:fs';

import type * as Api from '../src/index.js';
import type { StepMeter } from './closed-loop.js';
import { databaseUrl, type HostedSubject, hostSubject } from './worker-host.js';

// What users run: the compiled package. The loader that runs this file wraps every closure it compiles to keep its name,
// which the sources would pay for at each step, and the peer, which comes compiled, would not.
const PACKAGE = new URL('../dist/index.js', import.meta.url);
if (!existsSync(PACKAGE)) throw new Error('The package is not built: npm run build.');
const { Holdfast, Step, Workflow } = (await import(PACKAGE.href)) as typeof Api;

const meter: StepMeter = { steps: 0 };

class Bench {
  @Step()
  static trivial(index: number): Promise<number> {
    return Promise.resolve(index);
  }

  @Workflow()
  static async trivialSteps(steps: number): Promise<number> {
    let sum = 0;
    for (let index = 0; index < steps; index++) {
      sum += await Bench.trivial(index);
      meter.steps++;
    }
    return sum;
  }
}

await hostSubject(launch);

async function launch(): Promise<HostedSubject> {
  const holdfast = await Holdfast.launch({ workflows: [Bench], database: databaseUrl() });
  return {
    about: 'holdfast, this working tree, defaults',
    meter,
    perform: async (_work, steps) => {
      // eslint-disable-next-line @typescript-eslint/unbound-method -- it names the workflow and is not called here
      const handle = await holdfast.start(Bench.trivialSteps, {}, steps);
      return handle.result();
    },
    close: () => holdfast[Symbol.asyncDispose](),
  };
}
