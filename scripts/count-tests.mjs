// Prints the end of a CI run, over several runs of Vitest: each test that failed, with the beginning of its error, since a log may be
// kept by its end only; then the closing line, `tests: N passed, N failed`.
//
// Usage: node scripts/count-tests.mjs REPORT=STATUS …   (a JSON report, and the exit status of the run that wrote it)
//
// A run that was killed or broke before it wrote its report counts as one failure, and so does a test file that could
// not be loaded and a run that failed for a reason in no test, such as an unhandled rejection: none may look like success.

import { readFileSync } from 'node:fs';
import { relative } from 'node:path';

/**
 * What is used of Vitest's JSON report.
 * @typedef {object} Report
 * @property {number} numPassedTests
 * @property {number} numFailedTests
 * @property {TestFile[]} testResults
 */
/**
 * @typedef {object} TestFile
 * @property {string} [name] absolute path
 * @property {string} status
 * @property {string} [message] why the file could not be loaded
 * @property {{ status: string, fullName?: string, failureMessages?: string[] }[]} assertionResults
 */

const ERROR_LINES = 12;

let passed = 0;
let failed = 0;
for (const argument of process.argv.slice(2)) {
  const [report = '', status = ''] = argument.split('=');
  const counts = count(report);
  passed += counts.passed;
  failed += counts.failed === 0 && status !== '0' ? 1 : counts.failed;
}
console.log(`tests: ${String(passed)} passed, ${String(failed)} failed`);
process.exitCode = failed > 0 || passed === 0 ? 1 : 0;

/**
 * @param {string} file
 * @returns {{ passed: number, failed: number }}
 */
function count(file) {
  try {
    const report = /** @type {Report} */ (JSON.parse(readFileSync(file, 'utf8')));
    const broken = report.testResults.filter(
      (result) => result.status === 'failed' && !result.assertionResults.some(({ status }) => status === 'failed'),
    );
    for (const { name, message } of broken) tell(`${fileName(name)} could not be loaded`, message);
    for (const { name, assertionResults } of report.testResults) {
      for (const { status, fullName = '', failureMessages = [] } of assertionResults) {
        if (status === 'failed') tell(`${fileName(name)} > ${fullName}`, failureMessages.join('\n'));
      }
    }
    return { passed: report.numPassedTests, failed: report.numFailedTests + broken.length };
  } catch {
    return { passed: 0, failed: 1 };
  }
}

/** @param {string | undefined} path */
function fileName(path) {
  return path === undefined ? 'a test file' : relative(process.cwd(), path);
}

/**
 * @param {string} title
 * @param {string | undefined} error
 */
function tell(title, error = '') {
  const lines = error.split('\n').slice(0, ERROR_LINES);
  console.log([`FAILED ${title}`, ...lines.map((line) => `    ${line}`)].join('\n'));
}
