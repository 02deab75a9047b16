/** `npm run simulate`: see program.ts. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { EXIT_CODES } from '../campaigns/support/verdict.js';
import { parseSimulateCommand, USAGE } from './options.js';
import { programBundle } from './program-bundle.js';

const args = process.argv.slice(2);
const command = parseSimulateCommand(args);
if (command === undefined) console.log(USAGE);
else process.exitCode = await main(command.mutant !== undefined);

/** Compiled as one file, it takes three quarters of the time; and each thread needs it. */
async function main(hasMutants: boolean): Promise<number> {
  const bundle = await programBundle(hasMutants);
  try {
    const [code] = (await once(fork(bundle.program, args), 'exit')) as [number | null];
    return code ?? EXIT_CODES.void;
  } finally {
    await bundle.remove();
  }
}
