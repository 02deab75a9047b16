/** Makes the table of docs/reliability.md out of results files: `npm run chaos:table -- FILES…`. */
import { readFileSync } from 'node:fs';
import { writeMadePart } from '../support/made-part.js';
import { FAULTS } from './faults/index.js';
import { renderChaosTable } from './render-table.js';
import type { ChaosResult } from './results.js';

const files = process.argv.slice(2);
if (files.length === 0)
  throw new Error('Usage: npm run chaos:table -- FILES…, which npm run chaos -- --results has written');
const results = files.flatMap((file) =>
  readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as ChaosResult),
);
await writeMadePart('chaos', renderChaosTable(FAULTS, results));
