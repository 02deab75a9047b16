import { readFileSync } from 'node:fs';

import { DBOS } from '@dbos-inc/dbos-sdk';

import type { StepMeter } from '../../closed-loop.js';
import { databaseUrl, type HostedSubject, hostSubject } from '../../worker-host.js';

const meter: StepMeter = { steps: 0 };

const trivialSteps = DBOS.registerWorkflow(
  async (steps: number): Promise<number> => {
    let sum = 0;
    for (let index = 0; index < steps; index++) {
      sum += await DBOS.runStep(() => Promise.resolve(index), { name: 'trivial' });
      meter.steps++;
    }
    return sum;
  },
  { name: 'trivialSteps' },
);

await hostSubject(launch);

async function launch(): Promise<HostedSubject> {
  const poolSize = Number(process.env['BENCH_DBOS_POOL_SIZE']);
  DBOS.setConfig({
    name: 'bench',
    systemDatabaseUrl: databaseUrl(),
    systemDatabasePoolSize: poolSize,
    logLevel: 'error',
    enableOTLP: false,
  });
  await DBOS.launch();
  return {
    about: `@dbos-inc/dbos-sdk ${installedVersion()}, pool of ${String(poolSize)}`,
    meter,
    perform: async (_work, steps) => {
      const handle = await DBOS.startWorkflow(trivialSteps)(steps);
      return handle.getResult();
    },
    close: () => DBOS.shutdown(),
  };
}

function installedVersion(): string {
  // The package does not export its package.json, so it is read where this package's lock file puts it.
  const path = new URL('./node_modules/@dbos-inc/dbos-sdk/package.json', import.meta.url);
  const { version } = JSON.parse(readFileSync(path, 'utf8')) as { readonly version: string };
  return version;
}
