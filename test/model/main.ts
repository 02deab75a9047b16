import { missingTool, search, type Property, type Search } from './checker.js';
import { CONFIGURATIONS, MUTANTS, type Size } from './configurations.js';

const USAGE = `npm run model -- [--large] [--only TEXT]

  --large      also the larger configurations: minutes, and gigabytes, each
  --only TEXT  only configurations and mutants with this in their name

Without spin or gcc it says so and ends well; in CI that is a failure. Exit code 1: a violation, or a mutant that was not found.`;

/** In milliseconds. */
const LIMIT_MS = 240_000;
const LARGE_LIMIT_MS = 30 * 60_000;

const line = (search: Search, first: string, second: string, verdict: string): string =>
  `${first.padEnd(30)} ${second.padEnd(14)} ${verdict.padEnd(22)} ` +
  `${search.states.toLocaleString('en').padStart(12)} ${String(search.depth).padStart(6)} ${search.seconds.toFixed(1).padStart(7)} s`;

process.exitCode = await main(process.argv.slice(2));

async function main(options: readonly string[]): Promise<number> {
  if (options.includes('--help')) {
    console.log(USAGE);
    return 0;
  }
  const missing = missingTool();
  if (missing !== undefined) {
    console.log(`The model is not checked: there is no ${missing} here. On Debian: apt-get install spin gcc libc6-dev`);
    return process.env['HOLDFAST_CI_RUN'] === undefined ? 0 : 1;
  }
  const sizes: readonly Size[] = options.includes('--large') ? ['quick', 'usual', 'large'] : ['quick', 'usual'];
  const at = options.indexOf('--only');
  const only = at < 0 ? '' : (options[at + 1] ?? '');
  const failures = (await checkModel(sizes, only)) + (await checkMutants(only));
  console.log(failures === 0 ? '\nThe model holds, and every mutant was found.' : `\n${String(failures)} failed.`);
  return failures === 0 ? 0 : 1;
}

async function checkModel(sizes: readonly Size[], only: string): Promise<number> {
  let failures = 0;
  console.log('configuration                  property       verdict                      states  depth      time');
  for (const { name, size, liveness, parameters } of CONFIGURATIONS) {
    if (!sizes.includes(size) || !name.includes(only)) continue;
    const property: Property = liveness ?? 'safety';
    const result = await search(property, parameters, size === 'large' ? LARGE_LIMIT_MS : LIMIT_MS, size !== 'quick');
    if (result.finding.kind !== 'holds') failures += 1;
    console.log(line(result, name, property, verdictOf(result)));
  }
  return failures;
}

async function checkMutants(only: string): Promise<number> {
  let failures = 0;
  console.log('\nmutant                         property       verdict                      states  depth      time');
  for (const { name, foundBy, parameters } of MUTANTS) {
    if (!name.includes(only)) continue;
    for (const property of foundBy) {
      const result = await search(property, { ...parameters, [name]: 1 }, LIMIT_MS);
      const isFound = result.finding.kind === 'violated' && result.finding.property === property;
      if (!isFound) failures += 1;
      console.log(line(result, name, property, isFound ? 'found' : `NOT FOUND: ${verdictOf(result)}`));
    }
  }
  return failures;
}

function verdictOf({ finding }: Search): string {
  switch (finding.kind) {
    case 'holds':
      return 'holds';
    case 'violated':
      return `VIOLATED: ${finding.property}`;
    case 'unfinished':
      return `UNFINISHED: ${finding.why}`;
  }
}
