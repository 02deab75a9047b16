import { readFileSync } from 'node:fs';

/** Codes of errors that docs/errors.md lists. */
export function documentedCodes(): readonly string[] {
  const text = readFileSync(new URL('../../../docs/errors.md', import.meta.url), 'utf8');
  return [...text.matchAll(/^\| `([A-Z_]+)`/gm)].map(([, code]) => code ?? '');
}
