/**
 * Runs the ordinary suite again under each condition, one after the other, and says what came of it:
 *
 *   npm run conditions                                      all of them
 *   npm run conditions -- short-lease replay-always         these
 *   npm run conditions -- no-proto test/engine              only what is in this folder
 */
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';

import { CONDITION_VARIABLE, CONDITIONS, type ConditionName, isCondition } from '../support/conditions.js';
import { fits, isUnder, LEFT_OUT } from '../support/left-out.js';

interface Report {
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  readonly testResults: readonly {
    readonly name: string;
    readonly status: string;
    readonly assertionResults: readonly {
      readonly ancestorTitles: readonly string[];
      readonly title: string;
      readonly status: string;
    }[];
  }[];
}

interface Test {
  readonly file: string;
  readonly title: string;
  readonly status: string;
}

const asked = process.argv.slice(2);
const names = asked.filter(isCondition);
const filters = asked.filter((argument) => !isCondition(argument));

const folder = await mkdtemp(join(tmpdir(), 'holdfast-conditions-'));
let isRed = false;
try {
  for (const name of names.length > 0 ? names : (Object.keys(CONDITIONS) as ConditionName[])) {
    console.log(`\n== ${name}: ${CONDITIONS[name].what}`);
    const begunAt = performance.now();
    isRed = !(await underCondition(name)) || isRed;
    console.log(`  ${((performance.now() - begunAt) / 60_000).toFixed(1)} minutes`);
  }
} finally {
  await rm(folder, { recursive: true });
}
process.exitCode = isRed ? 1 : 0;

/** Whether all is well. */
async function underCondition(name: ConditionName): Promise<boolean> {
  const file = join(folder, `${name}.json`);
  await runTests(name, file);
  const report = await readReport(file);
  if (report === undefined) {
    console.log('The tests have not come to an end.');
    return false;
  }
  const tests = report.testResults.flatMap(testsOf);
  for (const { file: where, title, status } of tests)
    if (status === 'failed') console.log(`  failed: ${where}: ${title}`);
  const broken = report.testResults.filter(
    ({ status, assertionResults }) => status === 'failed' && !assertionResults.some((test) => test.status === 'failed'),
  );
  for (const { name: where } of broken) console.log(`  failed as a whole: ${relative(process.cwd(), where)}`);
  const stale = tellLeftOut(name, tests);
  const skipped = tests.length - report.numPassedTests - report.numFailedTests;
  console.log(
    `  ${String(report.testResults.length)} files: ${String(report.numPassedTests)} passed, ${String(report.numFailedTests)} failed, ${String(skipped)} skipped`,
  );
  return report.numFailedTests === 0 && broken.length === 0 && !stale;
}

function runTests(name: ConditionName, file: string): Promise<void> {
  const args = ['vitest', 'run', ...filters, '--reporter=default', '--reporter=json', `--outputFile=${file}`];
  const child = spawn('npx', args, {
    env: { ...process.env, [CONDITION_VARIABLE]: name },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('exit', () => {
      resolve();
    });
  });
}

async function readReport(file: string): Promise<Report | undefined> {
  try {
    return JSON.parse(await readFile(file, 'utf8')) as Report;
  } catch (error) {
    if ((error as { code?: unknown }).code === 'ENOENT') return undefined;
    throw error;
  }
}

function testsOf({ name, assertionResults }: Report['testResults'][number]): readonly Test[] {
  return assertionResults.map(({ ancestorTitles, title, status }) => ({
    file: relative(process.cwd(), name),
    title: [...ancestorTitles, title].join(' > '),
    status,
  }));
}

/** Says what was left out, and why. Returns whether an entry of the list fits no test: those are to be removed. */
function tellLeftOut(name: ConditionName, tests: readonly Test[]): boolean {
  let isStale = false;
  for (const entry of LEFT_OUT) {
    const { file, title, reason } = entry;
    if (!isUnder(entry, name)) continue;
    const isThere =
      title === undefined ? existsSync(file) : tests.some((test) => fits(entry, name, test.file, test.title));
    const what = title === undefined ? file : `${file}: ${title}`;
    if (isThere) console.log(`  left out: ${what}: ${reason}`);
    else if (title === undefined || filters.length === 0) {
      console.log(`  no test fits what is left out: ${what}`);
      isStale = true;
    }
  }
  return isStale;
}
