import type { HoldfastOptions } from '../../src/index.js';

/** One way to run the ordinary suite again. */
export interface Condition {
  /** What is different, as a sentence for people. */
  readonly what: string;
  /** What every launch gets that does not say otherwise itself. */
  readonly launch?: Partial<HoldfastOptions>;
  /** Flags of the processes that run the tests. */
  readonly nodeFlags?: readonly string[];
  /** Every execution is thrown away after each write, and its workflow's code runs again from its beginning. */
  readonly replaysAlways?: boolean;
}

/** A keyword of SQL: it works only where it is quoted, and where no name of a schema is taken for granted. */
const OTHER_SCHEMA = 'select';

export const CONDITIONS = {
  'short-lease': { what: 'a lease of 200 ms', launch: { lease: 200 } },
  'small-pool': { what: 'a pool of 2 connections', launch: { maxConnections: 2 } },
  'other-schema': { what: `a schema that is not the default one: ${OTHER_SCHEMA}`, launch: { schema: OTHER_SCHEMA } },
  'no-notifications': { what: 'LISTEN and NOTIFY are not used', launch: { notifications: false } },
  'no-proto': { what: '--disable-proto=delete: there is no __proto__', nodeFlags: ['--disable-proto=delete'] },
  'replay-always': {
    what: 'executions are replayed from the start at each await that something was written for',
    replaysAlways: true,
  },
} as const satisfies Record<string, Condition>;

export type ConditionName = keyof typeof CONDITIONS;

export const CONDITION_VARIABLE = 'HOLDFAST_TEST_CONDITION';

/** The condition that this run of the tests is under; undefined: the ordinary one. */
export function currentCondition(): (Condition & { readonly name: ConditionName }) | undefined {
  const name = process.env[CONDITION_VARIABLE];
  if (name === undefined || name === '') return undefined;
  if (!isCondition(name)) {
    throw new Error(`${CONDITION_VARIABLE} is "${name}", but only ${Object.keys(CONDITIONS).join(', ')} are known.`);
  }
  return { name, ...CONDITIONS[name] };
}

export function isCondition(name: string): name is ConditionName {
  return Object.hasOwn(CONDITIONS, name);
}

/** What a launch that says nothing of it gets. */
export function launchDefaults(): Partial<HoldfastOptions> {
  return currentCondition()?.launch ?? {};
}

/** The schema in which launches work that do not name one. */
export function defaultSchema(): string {
  return launchDefaults().schema ?? 'holdfast';
}

/** Settings of Holdfast, which have its name in front and no schema. */
const SETTINGS = 'clock_offset|transaction';
const NAMED = new RegExp(`(["']?)\\bholdfast\\.(?!(?:${SETTINGS})\\b)(?=\\w)`, 'g');

/** The schema as a value, in questions to the catalogues. */
const COMPARED = /\b(schemaname|nspname|table_schema) = 'holdfast'/g;

/** SQL of a test, which is written for the default schema, for the one that is used. */
export function inSchema(text: string, schema = defaultSchema()): string {
  if (schema === 'holdfast') return text;
  const named = text.replaceAll(COMPARED, (_, column: string) => `${column} = '${schema}'`);
  // Names of channels are one name in quotes, with the schema as a part of it.
  return named.replaceAll(NAMED, (_, quote: string) => (quote === '' ? `"${schema}".` : `${quote}${schema}.`));
}
