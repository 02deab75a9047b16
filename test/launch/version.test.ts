import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { VERSION } from '../../src/index.js';

test('the version that the library states is the one of its package', async () => {
  const manifest = JSON.parse(await readFile(new URL('../../package.json', import.meta.url), 'utf8')) as {
    readonly version: string;
  };
  expect(VERSION).toBe(manifest.version);
});
