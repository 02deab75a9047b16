import { readFile } from 'node:fs/promises';

import { afterAll, beforeAll, expect, test } from 'vitest';

import { type AdminBench, openAdminBench } from '../admin/support/admin-bench.js';
import { Protocol } from '../admin/support/protocol.js';
import fc from '../support/fast-check.js';
import { FUZZ_TIMEOUT_MS, fuzzRuns } from './runs.js';

let bench: AdminBench;
let documented: ReadonlySet<string>;
beforeAll(async () => {
  bench = await openAdminBench();
  const protocol = await Protocol.register(bench);
  await protocol.inStatus('ended', 'SUCCESS');
  await protocol.inStatus('suspended', 'SUSPENDED');
  const page = await readFile(new URL('../../docs/errors.md', import.meta.url), 'utf8');
  documented = new Set([...page.matchAll(/`([A-Z][A-Z_]+)`/g)].map(([, code]) => code ?? ''));
});
afterAll(() => bench.close());

/** Operations on one workflow, or one event: what it is comes first. */
const ON_TARGETS = [
  'cancel',
  'resume',
  'prioritize',
  'setAppVersion',
  'rewind',
  'repairStep',
  'fork',
  'delete',
  'get',
  'steps',
  'ownership',
  'audit',
  'rollback',
  'skipCompensation',
] as const;
const ON_EVENTS = ['redeliver', 'discard'] as const;

type Call = (target: unknown, options: unknown) => Promise<unknown>;

/** All that take arguments, by name. Lists have nothing but a filter. */
function calls({ admin }: AdminBench): ReadonlyMap<string, Call> {
  type Odd = (...args: unknown[]) => Promise<unknown>;
  return new Map<string, Call>([
    ...ON_TARGETS.map((name) => [name, admin[name].bind(admin) as Odd] as const),
    ...ON_EVENTS.map((name) => [`outbox.${name}`, admin.outbox[name].bind(admin.outbox) as Odd] as const),
    ['list', (_, filter) => (admin.list as Odd).call(admin, filter)],
    ['attention', (_, filter) => (admin.attention as Odd).call(admin, filter)],
    ['outbox.list', (_, filter) => (admin.outbox.list as Odd).call(admin.outbox, filter)],
  ]);
}

/** Values of every kind, more of those that come near to what is meant. */
const odd = fc.oneof(
  fc.anything({ maxDepth: 2, withBigInt: true, withDate: true, withMap: true, withNullPrototype: true }),
  fc.constantFrom<unknown>(
    '',
    'a\0',
    '\ud800',
    'x'.repeat(600),
    '__proto__',
    NaN,
    Infinity,
    -1,
    0.5,
    2 ** 53,
    new Date(NaN),
    Symbol('s'),
    () => 1,
  ),
);
const KEYS = [
  'toStep',
  'fromStep',
  'step',
  'seq',
  'priority',
  'appVersion',
  'reason',
  'actor',
  'children',
  'force',
  'limit',
  'cursor',
];
const options = fc.oneof(
  odd,
  fc.dictionary(
    fc.oneof(
      fc.constantFrom(
        ...KEYS,
        'status',
        'name',
        'idPrefix',
        'createdFrom',
        'createdBefore',
        'executorId',
        'parentId',
        'queue',
        'key',
        'attention',
        'order',
        'code',
        'state',
        'topic',
        'payload',
        'result',
        'workflowId',
        '__proto__',
      ),
      fc.string({ maxLength: 5 }),
    ),
    odd,
    { maxKeys: 4 },
  ),
);
/** None that is there: what is carried out on it would be right to be. */
const target = fc.oneof(
  odd,
  fc.constantFrom<unknown>('nowhere', ['nowhere', ''], [], [['nested']], "'; DROP TABLE x; --"),
);

test(
  'odd arguments of the admin API are answered, or refused with an error that is documented, and nothing is written',
  async () => {
    const before = await bench.snapshot();
    const operations = [...calls(bench)];
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...operations), target, options, async ([name, call], id, option) => {
        const error: unknown = await Promise.resolve()
          .then(() => call(id, option))
          .then(
            () => undefined,
            (thrown: unknown) => thrown ?? new Error('Nothing was thrown.'),
          );
        if (error === undefined) return;
        const { code } = error as { code?: unknown };
        if (typeof code !== 'string' || !documented.has(code) || code === 'DATABASE_ERROR') {
          throw new Error(`${name} failed with ${String(code)}`, { cause: error });
        }
      }),
      fuzzRuns(600),
    );
    expect(await bench.snapshot()).toBe(before);
  },
  FUZZ_TIMEOUT_MS,
);
