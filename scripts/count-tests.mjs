// Prints the closing line of a CI run, `tests: N passed, N failed`, over several runs of Vitest.
//
// Usage: node scripts/count-tests.mjs REPORT=STATUS …   (a JSON report, and the exit status of the run that wrote it)
//
// A run that was killed or broke before it wrote its report counts as one failure, and so does a test file that could
// not be loaded and a run that failed for a reason in no test, such as an unhandled rejection: none may look like success.

import { readFileSync } from 'node:fs';

/**
 * What is used of Vitest's JSON report.
 * @typedef {object} Report
 * @property {number} numPassedTests
 * @property {number} numFailedTests
 * @property {{ status: string, assertionResults: { status: string }[] }[]} testResults
 */

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
    return { passed: report.numPassedTests, failed: report.numFailedTests + broken.length };
  } catch {
    return { passed: 0, failed: 1 };
  }
}
