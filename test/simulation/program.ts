/** The simulation, compiled as one file: the command, and in its threads the schedules. */
import { isMainThread } from 'node:worker_threads';
import { EXIT_CODES } from '../campaigns/support/verdict.js';
import { tryAllMutants } from './all-mutants.js';
import { ALL_MUTANTS, parseSimulateCommand, USAGE, type SimulateCommand } from './options.js';
import { beMutant } from './program-bundle.js';
import { shrink, traceOf } from './simulate.js';
import { missingSubstance } from './substance.js';
import { serveSchedules, Threads } from './threads.js';
import type { Counts } from './violations.js';

/** Fewer runs than this need not have met everything. */
const LEAST_RUNS = 500;

// Where an error was made says nothing about where it happened, and takes time to find out.
Error.stackTraceLimit = 0;
if (isMainThread) await command();
else serveSchedules();

async function command(): Promise<void> {
  const parsed = parseSimulateCommand(process.argv.slice(2));
  if (parsed === undefined) {
    console.log(USAGE);
    return;
  }
  const threads = new Threads(new URL(import.meta.url), parsed.threads);
  process.exitCode = await main(parsed, threads).finally(() => threads.close());
}

async function main({ seed, seeds, scope, mutant, quick }: SimulateCommand, threads: Threads): Promise<number> {
  if (mutant === ALL_MUTANTS) {
    return (await tryAllMutants(threads, { scope, seed, seeds })) ? EXIT_CODES.green : EXIT_CODES.red;
  }
  if (mutant !== undefined) beMutant(mutant);
  const startedAt = performance.now();
  const cpu = process.cpuUsage();
  const { counts, failure, seeds: runs } = await threads.simulate({ scope, seed, seeds, mutant });
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

function rendered(counts: Counts): string {
  return Object.entries(counts)
    .map(([name, count]) => `${name} ${String(count)}`)
    .join(', ');
}
