import fc from 'fast-check';
import type { Act, Call, Fate, Fault, PlannedWorkflow, Program, QueueName, Scenario, Topic } from './scenario.js';

/** How much there is in a scenario. Times are milliseconds. */
interface Scope {
  readonly executors: { readonly min: number; readonly max: number };
  readonly workflows: number;
  /** When the last workflow is started. */
  readonly startsMs: number;
  /** Calls one after the other. */
  readonly calls: number;
  /** How deep programs are in programs. */
  readonly depth: number;
  readonly acts: number;
  readonly faults: { readonly min: number; readonly max: number };
  /** Which workflows and processes are meant: up to this number. */
  readonly highest: number;
  readonly healer: Scenario['healer'];
  /** When acts and faults end. */
  readonly troubleMs: number;
  readonly stepMs: readonly number[];
  readonly sleepMs: readonly number[];
  readonly receiveMs: readonly number[];
  readonly readMs: readonly number[];
  readonly pauseMs: readonly number[];
  readonly restartMs: readonly (number | null)[];
  readonly slowStoreMs: readonly number[];
  readonly timeoutMs: readonly (number | null)[];
}

const SCOPES = {
  ordinary: {
    executors: { min: 1, max: 3 },
    workflows: 4,
    startsMs: 150,
    calls: 4,
    depth: 2,
    acts: 4,
    faults: { min: 0, max: 10 },
    highest: 3,
    healer: 'always',
    troubleMs: 600,
    stepMs: [0, 1, 5, 20, 60, 120, 250],
    sleepMs: [0, 10, 100, 400],
    receiveMs: [0, 30, 300],
    readMs: [0, 50, 300],
    pauseMs: [60, 160, 300, 450, 700],
    restartMs: [null, 5, 100, 400],
    slowStoreMs: [50, 200],
    timeoutMs: [null, null, null, null, 100, 400],
  },
  /** Most mistakes show in small cases, of which many more are seen in the same time; and little happens that has no part in it. */
  small: {
    executors: { min: 1, max: 2 },
    workflows: 2,
    startsMs: 10,
    calls: 2,
    depth: 1,
    acts: 1,
    faults: { min: 1, max: 2 },
    highest: 1,
    healer: 'if-needed',
    troubleMs: 80,
    stepMs: [0, 1, 5, 20, 60],
    sleepMs: [0, 10, 100],
    receiveMs: [0, 30],
    readMs: [0, 50],
    // Longer than what is left of a lease, or not; and soon over.
    pauseMs: [60, 250, 350],
    restartMs: [null, 5, 100],
    slowStoreMs: [50],
    timeoutMs: [null, null, null, null, 100],
  },
} satisfies Record<string, Scope>;

export type ScopeName = keyof typeof SCOPES;

const topic = fc.constantFrom<Topic>('a', 'b');

const FATES: readonly Fate[] = ['request-lost', 'reply-lost', 'reply-lost', 'late', 'hole', 'slow-reply', 'slow-reply'];

function scenariosOf(scope: Scope): fc.Arbitrary<Scenario> {
  return fc.record({
    executors: fc.integer(scope.executors),
    workflows: fc.array(workflowOf(scope), { minLength: 1, maxLength: scope.workflows, size: 'max' }),
    acts: fc.array(actOf(scope), { maxLength: scope.acts, size: 'max' }),
    faults: fc.array(faultOf(scope), { minLength: scope.faults.min, maxLength: scope.faults.max, size: 'max' }),
    seed: fc.nat(),
    healer: fc.constant(scope.healer),
  });
}

function workflowOf(scope: Scope): fc.Arbitrary<PlannedWorkflow> {
  return fc.record({
    at: fc.integer({ min: 0, max: scope.startsMs }),
    by: fc.constantFrom(0, 0, 1, 1, 2, null),
    queue: fc.constantFrom<QueueName | null>(null, null, 'one', 'one-each'),
    timeoutMs: fc.constantFrom(...scope.timeoutMs),
    program: programOf(scope),
  });
}

function programOf(scope: Scope): fc.Arbitrary<Program> {
  return fc.letrec<{ program: Program; call: Call; leaf: Call; nested: Call }>((tie) => ({
    program: fc.array(tie('call'), { minLength: 1, maxLength: scope.calls, size: 'max' }),
    call: fc.oneof(
      { maxDepth: scope.depth, depthIdentifier: fc.createDepthIdentifier() },
      { weight: 4, arbitrary: tie('leaf') },
      tie('nested'),
    ),
    leaf: leafOf(scope),
    nested: nestedOf(tie('program')),
  })).program;
}

function leafOf({ stepMs, sleepMs, receiveMs, readMs, highest }: Scope): fc.Arbitrary<Call> {
  const short = fc.constantFrom(...stepMs);
  const other = fc.nat({ max: highest });
  return fc.oneof<fc.MaybeWeightedArbitrary<Call>[]>(
    {
      weight: 8,
      arbitrary: fc.record({ do: fc.constant('step'), ms: short, fails: fc.constantFrom(0, 0, 0, 1, 2, 2, 3) }),
    },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('sleep'), ms: fc.constantFrom(...sleepMs) }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('receive'), topic, ms: fc.constantFrom(...receiveMs) }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('send'), to: other, topic }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('undoable'), ms: short }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('outcome'), of: other }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('read'), of: other, ms: fc.constantFrom(...readMs) }) },
    { weight: 1, arbitrary: fc.constantFrom<Call>({ do: 'event' }, { do: 'value' }) },
    { weight: 1, arbitrary: fc.constant<Call>({ do: 'fail' }) },
  );
}

function nestedOf(program: fc.Arbitrary<Program>): fc.Arbitrary<Call> {
  return fc.oneof<fc.MaybeWeightedArbitrary<Call>[]>(
    {
      weight: 3,
      arbitrary: fc.record({
        do: fc.constant('all'),
        branches: fc.array(program, { minLength: 2, maxLength: 3 }),
      }),
    },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('child'), program }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('ignore'), program }) },
  );
}

function actOf({ troubleMs, highest }: Scope): fc.Arbitrary<Act> {
  const place = { at: fc.integer({ min: 0, max: troubleMs }), workflow: fc.nat({ max: highest }) };
  return fc.oneof<fc.MaybeWeightedArbitrary<Act>[]>(
    {
      weight: 3,
      arbitrary: fc.record({
        ...place,
        act: fc.constantFrom<'cancel' | 'undo' | 'resume' | 'prioritize'>('cancel', 'undo', 'resume', 'prioritize'),
      }),
    },
    { weight: 2, arbitrary: fc.record({ ...place, act: fc.constant('rewind'), toStep: fc.nat({ max: 4 }) }) },
    {
      weight: 2,
      arbitrary: fc.record({ ...place, act: fc.constant('send'), topic, count: fc.integer({ min: 1, max: 3 }) }),
    },
  );
}

function faultOf({ troubleMs, highest, pauseMs, restartMs, slowStoreMs }: Scope): fc.Arbitrary<Fault> {
  const where = { at: fc.integer({ min: 0, max: troubleMs }), process: fc.nat({ max: highest }) };
  return fc.oneof<fc.MaybeWeightedArbitrary<Fault>[]>(
    {
      weight: 3,
      arbitrary: fc.record({
        ...where,
        fault: fc.constant('crash'),
        restartMs: fc.constantFrom(...restartMs),
        sameId: fc.boolean(),
      }),
    },
    {
      weight: 4,
      arbitrary: fc.record({
        ...where,
        fault: fc.constant('pause'),
        ms: fc.constantFrom(...pauseMs),
        asleep: fc.boolean(),
      }),
    },
    {
      weight: 6,
      arbitrary: fc.record({
        ...where,
        fault: fc.constant('calls'),
        fate: fc.constantFrom<Fate>(...FATES),
        count: fc.integer({ min: 1, max: 6 }),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({ ...where, fault: fc.constant('slow-store'), ms: fc.constantFrom(...slowStoreMs) }),
    },
    {
      weight: 3,
      arbitrary: fc.record({
        ...where,
        fault: fc.constantFrom<'expire' | 'leave' | 'join' | 'twin' | 'wake'>(
          'expire',
          'leave',
          'join',
          'twin',
          'wake',
        ),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        ...where,
        fault: fc.constant('set-clock'),
        byMs: fc.constantFrom(-3_600_000, -500, 500, 3_600_000),
      }),
    },
  );
}

export const SCENARIOS: Readonly<Record<ScopeName, fc.Arbitrary<Scenario>>> = {
  ordinary: scenariosOf(SCOPES.ordinary),
  small: scenariosOf(SCOPES.small),
};
