import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join, relative } from 'node:path';
import pg from 'pg';
import ts from 'typescript';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import * as holdfast from '../../src/index.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { blocksOf, DOCUMENTS, ROOT, type Block } from './markdown.js';

// A block of TypeScript that imports the package is complete: it runs, and prints the text block that follows it. Any other
// one is a fragment, which is type-checked. A block of SQL runs when it is marked: <!-- example: run -->.

/** What fragments take for granted. */
const PRELUDE = [
  `import { ${Object.keys(holdfast).join(', ')} } from 'holdfast';`,
  'declare const holdfast: Holdfast;',
  'declare class Shop {',
  '  static first(): Promise<number>; static second(): Promise<number>;',
  '  static third(): Promise<number>; static fourth(): Promise<number>;',
  '}',
  '{',
].join(' ');

const blocks = DOCUMENTS.flatMap(blocksOf);
const typescript = blocks.filter(({ language }) => language === 'ts');
const complete = typescript.filter(isComplete);
const sql = blocks.filter(({ language, marker }) => language === 'sql' && marker === 'run');

let folder: string;
let database: TestDatabase;
beforeAll(async () => {
  // Below the root, so that packages are found; ignored by everything else.
  mkdirSync(join(ROOT, '.holdfast'), { recursive: true });
  folder = mkdtempSync(join(ROOT, '.holdfast', 'docs-'));
  for (const block of typescript) writeFileSync(fileOf(block), sourceOf(block));
  database = await createTestDatabase();
});
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  await database.drop();
});

function isComplete({ code }: Block): boolean {
  return /^import .* from 'holdfast';$/m.test(code);
}

function fileOf({ document, line }: Block): string {
  return join(folder, `${basename(document, '.md')}-${String(line)}.ts`);
}

/** One line before the code at most, so that lines can be told. */
function sourceOf(block: Block): string {
  const source = isComplete(block) ? block.code : `${PRELUDE}\n${block.code}\n}\nexport {};\n`;
  const specifier = relative(folder, join(ROOT, 'src', 'index.js'));
  return source.replaceAll("from 'holdfast'", `from '${specifier}'`);
}

const titled = (list: readonly Block[]): [string, Block][] =>
  list.map((block) => [`${block.document}:${String(block.line)}`, block]);

describe('TypeScript in the documentation', () => {
  test('there is some', () => {
    expect(complete.length).toBeGreaterThan(0);
    expect(complete.length).toBeLessThan(typescript.length);
  });

  test('compiles against the package', () => {
    const config = ts.readConfigFile(join(ROOT, 'tsconfig.json'), (path) => ts.sys.readFile(path)) as {
      readonly config: unknown;
    };
    const { options } = ts.parseJsonConfigFileContent(config.config, ts.sys, ROOT);
    const files = new Map(typescript.map((block) => [fileOf(block), block]));
    const program = ts.createProgram([...files.keys()], { ...options, noEmit: true });
    const problems = [...files].flatMap(([file, block]) => {
      const sourceFile = program.getSourceFile(file);
      const found = [...program.getSyntacticDiagnostics(sourceFile), ...program.getSemanticDiagnostics(sourceFile)];
      return found.map(({ messageText, start = 0 }) => {
        const { line = 0 } = sourceFile?.getLineAndCharacterOfPosition(start) ?? {};
        const place = `${block.document}:${String(block.line + line - (isComplete(block) ? 0 : 1))}`;
        return `${place}: ${ts.flattenDiagnosticMessageText(messageText, '\n')}`;
      });
    });
    expect(problems).toEqual([]);
  });

  test.each(titled(complete))('%s runs as it is and prints what is shown', async (_, block) => {
    const { exitCode, stdout, stderr } = await run(fileOf(block));
    // The tests' server is not durable, of which Holdfast warns.
    const errors = stderr.split('\n').filter((line) => line !== '' && !line.startsWith('{"level":"warn"'));
    expect({ exitCode, errors }).toEqual({ exitCode: 0, errors: [] });
    if (block.output !== undefined) expect(stdout.trimEnd()).toBe(block.output);
  });
});

describe('SQL in the documentation', () => {
  test('runs from top to bottom in one session and answers what is shown', async () => {
    const own = await createTestDatabase();
    const client = new pg.Client({ connectionString: own.url });
    try {
      await client.connect();
      await client.query(await holdfast.renderMigrationSql('holdfast'));
      expect(sql.length).toBeGreaterThan(0);
      for (const block of sql) {
        const answer = (await client.query({ text: block.code, rowMode: 'array' })) as unknown;
        const results = (Array.isArray(answer) ? answer : [answer]) as pg.QueryArrayResult[];
        expect(results.map(asTable).join('\n\n'), `${block.document}:${String(block.line)}`).toBe(block.output);
      }
    } finally {
      await client.end();
      await own.drop();
    }
  });
});

/** Much like psql does. */
function asTable({ fields, rows }: pg.QueryArrayResult): string {
  const names = fields.map(({ name }) => name);
  const cells = rows.map((row) => (row as (string | number | null)[]).map((value) => String(value ?? 'NULL')));
  const widths = names.map((name, column) => Math.max(name.length, ...cells.map((row) => row[column]?.length ?? 0)));
  const line = (row: readonly string[]): string =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join(' | ')
      .trimEnd();
  return [line(names), widths.map((width) => '-'.repeat(width)).join('-+-'), ...cells.map(line)]
    .filter((text) => text !== '')
    .join('\n');
}

interface Exit {
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

function run(file: string): Promise<Exit> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, ['--import', 'tsx', file], {
      cwd: ROOT,
      env: { ...process.env, DATABASE_URL: database.url },
      timeout: 40_000,
    });
    let stdout = '';
    let stderr = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
    child.on('error', reject);
    child.on('close', (exitCode) => {
      resolve({ exitCode, stdout, stderr });
    });
  });
}
