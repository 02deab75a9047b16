import fc from 'fast-check';

/** A call of a simulated workflow. Times are milliseconds. */
export type Call =
  | { readonly do: 'step'; readonly ms: number; readonly fails: number }
  | { readonly do: 'all'; readonly branches: readonly Program[] }
  | { readonly do: 'child'; readonly program: Program }
  | { readonly do: 'sleep'; readonly ms: number }
  | { readonly do: 'receive'; readonly topic: Topic; readonly ms: number }
  | { readonly do: 'send'; readonly to: number; readonly topic: Topic }
  | { readonly do: 'undoable'; readonly ms: number }
  /** What became of another workflow, of a higher number, so that they do not wait for each other. */
  | { readonly do: 'outcome'; readonly of: number }
  /** Reads the event that another workflow sets. */
  | { readonly do: 'read'; readonly of: number; readonly ms: number }
  | { readonly do: 'event' }
  | { readonly do: 'value' }
  /** Whatever it throws is ignored, also the loss of ownership. */
  | { readonly do: 'ignore'; readonly program: Program }
  | { readonly do: 'fail' };

export type Program = readonly Call[];
export type Topic = 'a' | 'b';

export interface PlannedWorkflow {
  readonly at: number;
  /** Which executor starts it, or `null`: it is enqueued. */
  readonly by: number | null;
  readonly queue: QueueName | null;
  readonly timeoutMs: number | null;
  readonly program: Program;
}

export type QueueName = 'one' | 'one-each';

/** What somebody does from outside. */
export type Act = { readonly at: number; readonly workflow: number } & (
  | { readonly act: 'cancel' | 'undo' | 'resume' | 'prioritize' }
  | { readonly act: 'rewind'; readonly toStep: number }
  | { readonly act: 'send'; readonly topic: Topic; readonly count: number }
);

/** What becomes of a call to the store. */
export type Fate =
  /** It does not arrive. */
  | 'request-lost'
  /** It takes effect, and nobody hears of it. */
  | 'reply-lost'
  /** It takes effect long after its sender gave it up. */
  | 'late'
  /** It takes effect; its sender waits in vain for longer than a lease. */
  | 'hole'
  /** It takes effect; the reply comes long after. */
  | 'slow-reply';

export type Fault = { readonly at: number; readonly process: number } & (
  | { readonly fault: 'crash'; readonly restartMs: number | null; readonly sameId: boolean }
  /** `asleep`: the machine is suspended, and the monotonic clock stands still. */
  | { readonly fault: 'pause'; readonly ms: number; readonly asleep: boolean }
  | { readonly fault: 'calls'; readonly fate: Fate; readonly count: number }
  | { readonly fault: 'slow-store'; readonly ms: number }
  | { readonly fault: 'expire' | 'leave' | 'join' | 'twin' | 'wake' }
  | { readonly fault: 'set-clock'; readonly byMs: number }
);

/** All that a run is made of. Two runs of equal scenarios are equal. */
export interface Scenario {
  readonly executors: number;
  readonly workflows: readonly PlannedWorkflow[];
  readonly acts: readonly Act[];
  readonly faults: readonly Fault[];
  /** Decides how long everything takes, and so in which order it happens. */
  readonly seed: number;
}

/** When faults and acts end, in milliseconds. */
const TROUBLE_MS = 600;

const topic = fc.constantFrom<Topic>('a', 'b');
const moment = fc.integer({ min: 0, max: TROUBLE_MS });
const short = fc.constantFrom(0, 1, 5, 20, 60, 120, 250);

const { program } = fc.letrec<{ program: Program; call: Call; leaf: Call; nested: Call }>((tie) => ({
  program: fc.array(tie('call'), { minLength: 1, maxLength: 4, size: 'max' }),
  call: fc.oneof({ maxDepth: 2, depthIdentifier: 'call' }, { weight: 4, arbitrary: tie('leaf') }, tie('nested')),
  leaf: fc.oneof<fc.MaybeWeightedArbitrary<Call>[]>(
    {
      weight: 8,
      arbitrary: fc.record({ do: fc.constant('step'), ms: short, fails: fc.constantFrom(0, 0, 0, 1, 2, 2, 3) }),
    },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('sleep'), ms: fc.constantFrom(0, 10, 100, 400) }) },
    {
      weight: 2,
      arbitrary: fc.record({ do: fc.constant('receive'), topic, ms: fc.constantFrom(0, 30, 300) }),
    },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('send'), to: fc.nat({ max: 3 }), topic }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('undoable'), ms: short }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('outcome'), of: fc.nat({ max: 3 }) }) },
    {
      weight: 1,
      arbitrary: fc.record({ do: fc.constant('read'), of: fc.nat({ max: 3 }), ms: fc.constantFrom(0, 50, 300) }),
    },
    { weight: 1, arbitrary: fc.constantFrom<Call>({ do: 'event' }, { do: 'value' }) },
    { weight: 1, arbitrary: fc.constant<Call>({ do: 'fail' }) },
  ),
  nested: fc.oneof<fc.MaybeWeightedArbitrary<Call>[]>(
    {
      weight: 3,
      arbitrary: fc.record({
        do: fc.constant('all'),
        branches: fc.array(tie('program'), { minLength: 2, maxLength: 3 }),
      }),
    },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('child'), program: tie('program') }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('ignore'), program: tie('program') }) },
  ),
}));

const workflow: fc.Arbitrary<PlannedWorkflow> = fc.record({
  at: fc.integer({ min: 0, max: 150 }),
  by: fc.constantFrom(0, 0, 1, 1, 2, null),
  queue: fc.constantFrom<QueueName | null>(null, null, 'one', 'one-each'),
  timeoutMs: fc.constantFrom(null, null, null, null, 100, 400),
  program,
});

const place = { at: moment, workflow: fc.nat({ max: 3 }) };
const act = fc.oneof<fc.MaybeWeightedArbitrary<Act>[]>(
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

const where = { at: moment, process: fc.nat({ max: 3 }) };
const fault = fc.oneof<fc.MaybeWeightedArbitrary<Fault>[]>(
  {
    weight: 3,
    arbitrary: fc.record({
      ...where,
      fault: fc.constant('crash'),
      restartMs: fc.constantFrom(null, 5, 100, 400),
      sameId: fc.boolean(),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      ...where,
      fault: fc.constant('pause'),
      ms: fc.constantFrom(60, 160, 300, 450, 700),
      asleep: fc.boolean(),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      ...where,
      fault: fc.constant('calls'),
      fate: fc.constantFrom<Fate>(
        'request-lost',
        'reply-lost',
        'reply-lost',
        'late',
        'hole',
        'slow-reply',
        'slow-reply',
      ),
      count: fc.integer({ min: 1, max: 6 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ ...where, fault: fc.constant('slow-store'), ms: fc.constantFrom(50, 200) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      ...where,
      fault: fc.constantFrom<'expire' | 'leave' | 'join' | 'twin' | 'wake'>('expire', 'leave', 'join', 'twin', 'wake'),
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

export const scenarios: fc.Arbitrary<Scenario> = fc.record({
  executors: fc.integer({ min: 1, max: 3 }),
  workflows: fc.array(workflow, { minLength: 1, maxLength: 4, size: 'max' }),
  acts: fc.array(act, { maxLength: 4, size: 'max' }),
  faults: fc.array(fault, { maxLength: 10, size: 'max' }),
  seed: fc.nat(),
});

/** How long the calls of a program take at least, one after the other, in milliseconds. */
export function workOf(calls: Program): number {
  return calls.reduce((sum, call) => {
    switch (call.do) {
      case 'step':
        return sum + (call.ms + 25) * (call.fails + 1);
      case 'undoable':
        // It is undone as well.
        return sum + 2 * call.ms + 25;
      case 'sleep':
      case 'receive':
      case 'read':
        return sum + call.ms;
      case 'all':
        return sum + call.branches.reduce((most, branch) => most + workOf(branch), 0);
      case 'child':
      case 'ignore':
        return sum + workOf(call.program);
      case 'outcome':
      case 'send':
      case 'event':
      case 'value':
      case 'fail':
        return sum;
    }
  }, 0);
}
