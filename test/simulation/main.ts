import { fork } from 'node:child_process';
import { once } from 'node:events';
import { EXIT_CODES } from '../campaigns/support/verdict.js';
import { tryAllMutants } from './all-mutants.js';
import { mutatedBundle, beMutant } from './mutated-bundle.js';
import { ALL_MUTANTS, MUTANT_VARIABLE, parseSimulateCommand, USAGE, type SimulateCommand } from './options.js';
import { shrink, simulate, traceOf } from './simulate.js';
import { missingSubstance } from './substance.js';
import type { Counts } from './violations.js';

/** Fewer runs than this need not have met everything. */
const LEAST_RUNS = 500;

const command = parseSimulateCommand(process.argv.slice(2));
if (command === undefined) console.log(USAGE);
else process.exitCode = await main(command);

async function main({ seed, seeds, scope, mutant, quick }: SimulateCommand): Promise<number> {
  if (mutant !== undefined && process.env[MUTANT_VARIABLE] === undefined) return runMutant(mutant);
  // Where an error was made says nothing about where it happened, and takes time to find out.
  Error.stackTraceLimit = 0;
  if (mutant === ALL_MUTANTS) return (await tryAllMutants({ scope, seed, seeds })) ? EXIT_CODES.green : EXIT_CODES.red;
  if (mutant !== undefined) beMutant(mutant);
  const startedAt = performance.now();
  const cpu = process.cpuUsage();
  const { counts, failure, seeds: runs } = await simulate(scope, seed, seeds);
  const tookMs = performance.now() - startedAt;
  const cpuMs = process.cpuUsage(cpu).user / 1_000;
  console.log(
    `${String(runs)} schedules in ${(tookMs / 1_000).toFixed(1)} s, ${(runs / (tookMs / 1_000)).toFixed(0)} a second, ${(runs / (cpuMs / 1_000)).toFixed(0)} a second of a core`,
  );
  console.log(rendered(counts));
  if (failure !== undefined) {
    const again = `npm run simulate -- --seed ${String(failure.seed)} --seeds 1${scope === 'small' ? ' --small' : ''}${mutant === undefined ? '' : ` --mutant ${mutant}`}`;
    console.log(`red: seed ${String(failure.seed)}; again: ${again}`);
    for (const { judge, text, at } of failure.violations) console.log(`  ${judge} after ${at.toFixed(1)} ms: ${text}`);
    if (quick) return EXIT_CODES.red;
    const smallest = await shrink(failure);
    console.log(`\nthe smallest that was found:\n${JSON.stringify(smallest.scenario)}`);
    for (const { judge, text, at } of smallest.violations) console.log(`  ${judge} after ${at.toFixed(1)} ms: ${text}`);
    console.log(`\nwhat happens in it:\n${(await traceOf(smallest.scenario)).join('\n')}`);
    return EXIT_CODES.red;
  }
  const missing = runs < LEAST_RUNS ? [] : missingSubstance(scope, counts, runs);
  console.log(missing.length === 0 ? 'green' : `void: ${missing.join('; ')}`);
  return missing.length === 0 ? EXIT_CODES.green : EXIT_CODES.void;
}

/** In a process of its own, which runs a copy of the library. */
async function runMutant(mutant: string): Promise<number> {
  const bundle = await mutatedBundle();
  try {
    const child = fork(bundle.program, process.argv.slice(2), { env: { ...process.env, [MUTANT_VARIABLE]: mutant } });
    const [code] = (await once(child, 'exit')) as [number | null];
    return code ?? EXIT_CODES.void;
  } finally {
    await bundle.remove();
  }
}

function rendered(counts: Counts): string {
  return Object.entries(counts)
    .map(([name, count]) => `${name} ${String(count)}`)
    .join(', ');
}
