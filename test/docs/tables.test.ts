import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { describe, expect, test } from 'vitest';
import { DEFAULT_MAX_CONNECTIONS } from '../../src/drivers/driver-options.js';
import * as errors from '../../src/errors/index.js';
import * as holdfast from '../../src/index.js';
import { checkOptions } from '../../src/launch-options.js';
import { DEFAULT_MAX_VALUE_BYTES } from '../../src/values/index.js';
import { DOCUMENTS, proseOf, ROOT, tableRows } from './markdown.js';

/** The text in the first code span of a cell. */
const codeIn = (cell = ''): string | undefined => /`([^`]+)`/.exec(cell)?.[1];

describe('the table of options in the README', () => {
  const rows = new Map(tableRows('README.md', '## Configuration').map(([name, ...rest]) => [codeIn(name), rest]));
  const options = propertiesOf('src/holdfast-options.ts', 'HoldfastOptions');

  test('has every option of launch, and no other', () => {
    expect([...rows.keys()].filter((name) => name !== undefined)).toEqual([...options.keys()]);
  });

  test('says which option is required', () => {
    const required = [...options].filter(([, { isOptional }]) => !isOptional).map(([name]) => name);
    const stated = [...rows].filter(([, [, fallback]]) => fallback === 'required').map(([name]) => name);
    expect(stated).toEqual(required);
  });

  test('has the defaults of the code', () => {
    const settings = checkOptions({ workflows: [] });
    const seconds = (ms: number): string => `${String(ms / 1_000)}s`;
    expect(
      Object.fromEntries(
        Object.keys(expectedDefaults(settings, seconds)).map((name) => [name, codeIn(rows.get(name)?.[1])]),
      ),
    ).toEqual(expectedDefaults(settings, seconds));
  });

  test('has the defaults that the documentation in the code states', () => {
    for (const [name, { documentation }] of options) {
      const stated = /Default (true|false)\./.exec(documentation)?.[1];
      if (stated !== undefined) expect([name, codeIn(rows.get(name)?.[1])]).toEqual([name, stated]);
    }
  });
});

function expectedDefaults(
  settings: ReturnType<typeof checkOptions>,
  seconds: (ms: number) => string,
): Record<string, string> {
  return {
    maxConnections: String(DEFAULT_MAX_CONNECTIONS),
    schema: settings.schema,
    lease: seconds(settings.leaseMs),
    pollInterval: seconds(settings.pollMs),
    maxConcurrent: String(settings.maxConcurrent),
    suspendAfter: seconds(settings.suspendAfterMs),
    maxValueBytes: `${String(DEFAULT_MAX_VALUE_BYTES / 1_024 ** 2)} MiB`,
    launchTimeout: seconds(settings.launchTimeoutMs),
    shutdownTimeout: seconds(settings.shutdownTimeoutMs),
    migrate: 'true',
    notifications: 'true',
    allowAsynchronousCommit: 'false',
  };
}

interface Property {
  readonly isOptional: boolean;
  readonly documentation: string;
}

function propertiesOf(path: string, interfaceName: string): Map<string, Property> {
  const text = readFileSync(join(ROOT, path), 'utf8');
  const file = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
  const declaration = file.statements.find(
    (statement): statement is ts.InterfaceDeclaration =>
      ts.isInterfaceDeclaration(statement) && statement.name.text === interfaceName,
  );
  if (declaration === undefined) throw new Error(`${path} declares no ${interfaceName}.`);
  return new Map(
    declaration.members.filter(ts.isPropertySignature).map((member) => [
      member.name.getText(file),
      {
        isOptional: member.questionToken !== undefined,
        documentation: text.slice(member.getFullStart(), member.getStart(file)),
      },
    ]),
  );
}

test('the table of the public interface names everything that the package exports', () => {
  const cells = tableRows('README.md', '## Programming interface').map(([name = '']) => name);
  const missing = Object.keys(holdfast)
    .filter((name) => !(name in errors))
    .filter((name) => !cells.some((cell) => new RegExp(`\\b${name}\\b`).test(cell)));
  expect(missing).toEqual([]);
});

describe('the table of errors', () => {
  const documented = tableRows('docs/errors.md')
    .map(([code, className]) => [codeIn(className), codeIn(code)])
    .filter(([className]) => className !== undefined);

  test('has every class that the package exports, once, with its code; and no other', () => {
    const classes = Object.entries(errors).filter(([name]) => name !== 'HoldfastError');
    const actual = classes.map(([name, errorClass]) => {
      const { code } = Reflect.construct(errorClass, ['', {}, {}]) as errors.HoldfastError;
      return [name, code];
    });
    expect(documented.toSorted()).toEqual(actual.toSorted());
  });

  test('has a time and a remedy for each', () => {
    for (const row of tableRows('docs/errors.md')) {
      expect(row).toHaveLength(4);
      for (const cell of row) expect(cell).not.toBe('');
    }
  });
});

test('the documentation of the protocol names every SQL function and every table, and no function that is not there', () => {
  const names = new Set([...proseOf('docs/protocol.md').matchAll(/`(\w+)`/g)].map(([, name]) => name));
  const functions = readdirSync(join(ROOT, 'sql', 'functions')).map((name) => name.replace(/\.sql$/, ''));
  const tables = readdirSync(join(ROOT, 'sql', 'migrations')).flatMap((name) => {
    const text = readFileSync(join(ROOT, 'sql', 'migrations', name), 'utf8');
    return [...text.matchAll(/^CREATE TABLE (\w+)/gm)].map(([, table]) => table);
  });
  expect([...functions, ...tables].filter((name) => name !== 'clock' && !names.has(name))).toEqual([]);
  for (const [, name] of tableRows('docs/protocol.md', '## Functions of executions').flatMap(([cell = '']) => [
    ...cell.matchAll(/`(\w+)`/g),
  ]))
    expect(functions).toContain(name);
});

test('the changelog states the schema version and says of every migration whether older libraries go on', () => {
  const text = proseOf('CHANGELOG.md');
  const versions = readdirSync(join(ROOT, 'sql', 'migrations')).map((name) => Number.parseInt(name, 10));
  expect(/^- Version (\d+)\./m.exec(text)?.[1]).toBe(String(Math.max(...versions)));
  const described = [...text.matchAll(/^- Migration (\d+) /gm)].map(([, version]) => Number(version));
  expect(described).toEqual(versions.filter((version) => version > 1).toSorted((a, b) => b - a));
});

test('no table of the documentation is cut in two by an empty line', () => {
  const cut = DOCUMENTS.flatMap((document) => [...proseOf(document).matchAll(/^\|.*\n\n(\|.*)\n(?!\| ?-)/gm)]);
  expect(cut.map(([, row]) => row)).toEqual([]);
});
