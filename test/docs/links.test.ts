import { existsSync } from 'node:fs';
import { join, normalize, relative, sep } from 'node:path';
import { expect, test } from 'vitest';
import { anchorsOf, DOCUMENTS, proseOf, readDocument, ROOT } from './markdown.js';

test.each(DOCUMENTS)('every relative link in %s leads somewhere', (document) => {
  const broken = [...proseOf(document).matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, target = '']) => target)
    .filter((target) => !/^[a-z]+:/.test(target) && !leadsSomewhere(document, target));
  expect(broken).toEqual([]);
});

function leadsSomewhere(document: string, target: string): boolean {
  const [path = '', anchor] = target.split('#');
  const file = path === '' ? document : relative(ROOT, normalize(join(ROOT, document, '..', path)));
  if (file.startsWith('..') || !existsSync(join(ROOT, file))) return false;
  return anchor === undefined || anchorsOf(file.split(sep).join('/')).has(anchor);
}

test('the README leads to every page of the documentation', () => {
  const pages = DOCUMENTS.filter((document) => document !== 'README.md');
  expect(pages.filter((page) => !readDocument('README.md').includes(`](${page}`))).toEqual([]);
});
