/** Makes the table of docs/reliability.md out of results files: `npm run chaos:table -- FILES…`. */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { format, resolveConfig } from 'prettier';
import { FAULTS } from './faults/index.js';
import { renderChaosTable } from './render-table.js';
import type { ChaosResult } from './results.js';

const PAGE = fileURLToPath(new URL('../../../docs/reliability.md', import.meta.url));
const BEGIN = '<!-- chaos: begin -->';
const END = '<!-- chaos: end -->';

const files = process.argv.slice(2);
if (files.length === 0)
  throw new Error('Usage: npm run chaos:table -- FILES…, which npm run chaos -- --results has written');
const results = files.flatMap((file) =>
  readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as ChaosResult),
);
const page = readFileSync(PAGE, 'utf8');
const begin = page.indexOf(BEGIN);
const end = page.indexOf(END);
if (begin === -1 || end < begin) throw new Error(`${PAGE} has no place for the table: ${BEGIN} … ${END}.`);
const text = `${page.slice(0, begin)}${BEGIN}\n\n${renderChaosTable(FAULTS, results)}\n\n${page.slice(end)}`;
writeFileSync(PAGE, await format(text, { ...(await resolveConfig(PAGE)), parser: 'markdown' }));
