import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { expect, test } from 'vitest';

import { scratchDirectory } from './embedded-support.js';

const script = fileURLToPath(new URL('../../scripts/count-tests.mjs', import.meta.url));

function count(...runs: readonly string[]): { readonly line: string; readonly status: number | null } {
  const { stdout, status } = spawnSync(process.execPath, [script, ...runs], { encoding: 'utf8' });
  return { line: stdout.trim().split('\n').at(-1) ?? '', status };
}

function printed(run: string): string {
  return spawnSync(process.execPath, [script, run], { encoding: 'utf8' }).stdout;
}

function report(passed: number, failed: number, testResults: readonly unknown[] = []): string {
  const file = join(scratchDirectory(), 'report.json');
  writeFileSync(file, JSON.stringify({ numPassedTests: passed, numFailedTests: failed, testResults }));
  return file;
}

test('CI’s closing line sums all runs', () => {
  expect(count(`${report(5, 0)}=0`, `${report(2, 0)}=0`)).toEqual({ line: 'tests: 7 passed, 0 failed', status: 0 });
  expect(count(`${report(5, 1)}=1`, `${report(2, 0)}=0`)).toEqual({ line: 'tests: 7 passed, 1 failed', status: 1 });
});

test('a run that was killed, or failed outside its tests, counts as a failure', () => {
  expect(count(`${report(5, 0)}=0`, '/nonexistent/report.json=unfinished').line).toBe('tests: 5 passed, 1 failed');
  expect(count(`${report(5, 0)}=124`).line).toBe('tests: 5 passed, 1 failed');
});

test('a test file that could not be loaded counts as a failure', () => {
  const broken = report(5, 0, [{ status: 'failed', assertionResults: [] }]);
  expect(count(`${broken}=1`)).toEqual({ line: 'tests: 5 passed, 1 failed', status: 1 });
  expect(printed(`${broken}=1`)).toContain('FAILED a test file could not be loaded');
});

test('tests that failed are named with their errors, before the closing line', () => {
  const failed = report(5, 1, [
    {
      name: join(process.cwd(), 'test/some.test.ts'),
      status: 'failed',
      assertionResults: [
        { status: 'passed', fullName: 'holds' },
        { status: 'failed', fullName: 'C1 breaks', failureMessages: ['Error: 1 is not 2\n    at line 3'] },
      ],
    },
  ]);
  expect(printed(`${failed}=1`)).toBe(
    'FAILED test/some.test.ts > C1 breaks\n    Error: 1 is not 2\n        at line 3\ntests: 5 passed, 1 failed\n',
  );
});

test('no test at all is not a success', () => {
  expect(count(`${report(0, 0)}=0`)).toEqual({ line: 'tests: 0 passed, 0 failed', status: 1 });
});
