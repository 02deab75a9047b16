import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import {
  continueAsNew,
  defineWorkflow,
  HoldfastError,
  NonRetryableError,
  outbox,
  OutcomeUnknownError,
  RetryableError,
  runStep,
  step,
  StepDidNotHappenError,
  StepRetriesExhaustedError,
  StepTimeoutError,
  StepUnderWayError,
  workflow,
  type Holdfast,
  type Reconciliation,
  type StepOptions,
  type WorkflowDetails,
} from '../../src/index.js';
import { createBed, gate, waitUntil, type Bed } from '../support/launch.js';

// What becomes of a step whose outcome is unknown. The provider is an object outside of the database.

let bed: Bed;
/** What a test has launched: all of them together would use up the server's connections. */
const launched: Holdfast[] = [];
beforeAll(async () => {
  const made = await createBed();
  bed = {
    ...made,
    launch: async (options) => {
      const holdfast = await made.launch(options);
      launched.push(holdfast);
      return holdfast;
    },
  };
});
afterEach(() => Promise.all(launched.splice(0).map((holdfast) => holdfast.close())));
afterAll(() => bed.close());

interface Effects {
  /** Idempotency keys under which the body was begun. */
  readonly bodies: string[];
  /** Questions: the key, and the number of the question. */
  readonly questions: (readonly [key: string, attempt: number])[];
  body: () => Promise<string>;
  answer: () => Promise<Reconciliation<string>>;
}

let effects: Effects;
let count = 0;
beforeEach(() => {
  effects = {
    bodies: [],
    questions: [],
    body: () => Promise.reject(new OutcomeUnknownError('no reply')),
    answer: () => Promise.resolve({ stillUnknown: true }),
  };
});

const QUICK = { maxAttempts: 3, initialDelay: 1, maxDelay: 2 };
type Options = Omit<StepOptions<() => Promise<Reconciliation<string>>, never>, 'name'>;

function charge(options: Options): Promise<string> {
  return runStep(
    'charge',
    () => {
      effects.bodies.push(step().idempotencyKey);
      return effects.body();
    },
    options,
  );
}

const withReconcile = (options: Options = {}): Options => ({
  reconcile: () => {
    effects.questions.push([step().idempotencyKey, step().attempt]);
    return effects.answer();
  },
  reconcileRetries: QUICK,
  ...options,
});

interface Run {
  readonly holdfast: Holdfast;
  readonly workflowId: string;
  readonly result: Promise<unknown>;
}

async function run(options: Options, body: () => Promise<unknown> = () => charge(options)): Promise<Run> {
  const name = `unknown-${String(++count)}`;
  const definition = defineWorkflow(name, body);
  const holdfast = await bed.launch({ workflows: [definition], executorId: name });
  const result = (await holdfast.start(definition, { workflowId: name })).result();
  result.catch(() => undefined);
  return { holdfast, workflowId: name, result };
}

async function blocked({ holdfast, workflowId }: Run): Promise<WorkflowDetails> {
  await waitUntil(async () => (await holdfast.admin.get(workflowId)).status === 'BLOCKED', 'the workflow is blocked');
  return holdfast.admin.get(workflowId);
}

async function intents(workflowId: string): Promise<unknown[]> {
  const { rows } = await bed.sql.query(
    'SELECT seq, name, kind, attempts FROM holdfast.step_intent WHERE workflow_id = $1 ORDER BY seq',
    [workflowId],
  );
  return rows as unknown[];
}

test('what happened becomes the result, and the body is not run again', async () => {
  effects.answer = () => Promise.resolve({ happened: true, result: 'charged' });
  const one = await run(withReconcile({ retries: { maxAttempts: 5 } }));
  expect(await one.result).toBe('charged');
  expect(effects.bodies).toHaveLength(1);
  expect(effects.questions).toEqual([[effects.bodies[0], 1]]);
  const { items } = await one.holdfast.admin.steps(one.workflowId, { payload: true });
  expect(items).toMatchObject([{ seq: 0, kind: 'step', complete: true, attempts: 1, output: { value: 'charged' } }]);
  expect(items[0]?.attemptErrors).toMatchObject([{ value: { code: 'OUTCOME_UNKNOWN' } }]);
});

test('what did not happen is run again, as the next attempt under the same key, within the budget of retries', async () => {
  const attempts: number[] = [];
  effects.body = () => {
    attempts.push(step().attempt);
    return attempts.length < 3 ? Promise.reject(new OutcomeUnknownError('no reply')) : Promise.resolve('charged');
  };
  effects.answer = () => Promise.resolve({ didNotHappen: true });
  const one = await run(withReconcile({ retries: { maxAttempts: 3, initialDelay: 1 } }));
  expect(await one.result).toBe('charged');
  expect(attempts).toEqual([1, 2, 3]);
  expect(new Set([...effects.bodies, ...effects.questions.map(([key]) => key)]).size).toBe(1);
});

test('what did not happen fails when no attempts are left, with what the run had ended with as the cause', async () => {
  effects.answer = () => Promise.resolve({ didNotHappen: true });
  const error: unknown = await (await run(withReconcile())).result.catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(StepDidNotHappenError);
  expect((error as Error).cause).toBeInstanceOf(OutcomeUnknownError);
  const retried = await run(withReconcile({ retries: { maxAttempts: 2, initialDelay: 1 } }));
  const exhausted: unknown = await retried.result.catch((thrown: unknown) => thrown);
  expect(exhausted).toBeInstanceOf(StepRetriesExhaustedError);
  expect((exhausted as StepRetriesExhaustedError).errors).toMatchObject([
    { code: 'STEP_DID_NOT_HAPPEN' },
    { code: 'STEP_DID_NOT_HAPPEN' },
  ]);
});

test('a timeout is not a failure: reconcile is asked before the body is run again', async () => {
  const hanging = gate<string>();
  effects.body = () => hanging.opened;
  effects.answer = () => Promise.resolve({ happened: true, result: 'charged all the same' });
  const one = await run(withReconcile({ timeout: 20, retries: { maxAttempts: 5, initialDelay: 1 } }));
  expect(await one.result).toBe('charged all the same');
  expect(effects.bodies).toHaveLength(1);
  hanging.open('too late');
});

test('a timeout of a step that has neither reconcile nor atMostOnce is tried again like any failure', async () => {
  const hanging = gate<string>();
  effects.body = () => (effects.bodies.length === 1 ? hanging.opened : Promise.resolve('second'));
  const one = await run({ timeout: 20, retries: { maxAttempts: 2, initialDelay: 1 } });
  expect(await one.result).toBe('second');
  expect(await intents(one.workflowId)).toEqual([]);
  hanging.open('too late');
});

test('an ordinary error is the answer of the body: nobody is asked', async () => {
  effects.body = () => Promise.reject(new NonRetryableError('declined'));
  const one = await run(withReconcile());
  await expect(one.result).rejects.toThrow('declined');
  expect(effects.questions).toEqual([]);
});

/** Even `instanceof` throws for it. */
function revoked(): Error {
  const { proxy, revoke } = Proxy.revocable(new Error('revoked'), {});
  revoke();
  return proxy;
}

test('what cannot be looked at is an error of the body like any other: recorded, and nobody is asked', async () => {
  effects.body = () => Promise.reject(revoked());
  const one = await run({ atMostOnce: true });
  await expect(one.result).rejects.toThrow('cannot be looked at');
  const { items } = await one.holdfast.admin.steps(one.workflowId);
  expect(items).toMatchObject([{ name: 'charge', complete: true, attempts: 1 }]);
  expect((await one.holdfast.admin.get(one.workflowId)).attention).toBeNull();
});

test('still unknown: asked again with growing waits, then blocked with what to do; a resume asks again', async () => {
  const one = await run(withReconcile());
  const { attention } = await blocked(one);
  expect(attention?.code).toBe('OUTCOME_UNKNOWN');
  expect(attention?.detail).toContain('step "charge" (number 0, idempotency key ' + (effects.bodies[0] ?? '') + ')');
  expect(effects.questions.map(([, attempt]) => attempt)).toEqual([1, 2, 3]);
  expect(await intents(one.workflowId)).toEqual([{ seq: 0, name: 'charge', kind: 'step', attempts: 1 }]);
  effects.answer = () => Promise.resolve({ happened: true, result: 'found at last' });
  await one.holdfast.admin.resume(one.workflowId);
  expect(await one.result).toBe('found at last');
  expect(effects.bodies).toHaveLength(1);
  expect((await one.holdfast.admin.get(one.workflowId)).attention).toBeNull();
});

test.each<[string, () => Promise<Reconciliation<string>>, number]>([
  ['throws', () => Promise.reject(new Error('the provider is down')), 3],
  ['hangs', () => new Promise(() => undefined), 3],
  ['throws NonRetryableError', () => Promise.reject(new NonRetryableError('no such account')), 1],
  ['answers nothing', () => Promise.resolve(undefined as never), 1],
  ['answers a result without saying that it happened', () => Promise.resolve({ result: 'x' } as never), 1],
  ['says that it happened and has no result', () => Promise.resolve({ happened: true } as never), 1],
  ['contradicts itself', () => Promise.resolve({ happened: true, result: 'x', didNotHappen: true } as never), 1],
  ['throws what cannot be looked at', () => Promise.reject(revoked()), 3],
  ['throws what has no text', () => Promise.reject(Object.create(null) as Error), 3],
  [
    'answers with what throws when it is read',
    () =>
      Promise.resolve({
        get happened(): true {
          throw new Error('not to be read');
        },
        result: 'x',
      }),
    1,
  ],
  ['says that it did happen by a text', () => Promise.resolve({ happened: 'yes', result: 'x' } as never), 1],
])('a reconcile that %s never leads to a second run of the body', async (_, answer, questions) => {
  effects.answer = answer;
  const one = await run(withReconcile({ reconcileTimeout: 20, retries: { maxAttempts: 9 } }));
  expect((await blocked(one)).attention?.code).toBe('OUTCOME_UNKNOWN');
  expect(effects.bodies).toHaveLength(1);
  expect(effects.questions).toHaveLength(questions);
});

test('a reconcile can say when it wants to be asked again', async () => {
  effects.answer = () =>
    effects.questions.length === 1
      ? Promise.reject(new RetryableError('later', { afterMs: 1 }))
      : Promise.resolve({ happened: true, result: 'later' });
  const one = await run(withReconcile({ reconcileRetries: { initialDelay: '1h' } }));
  expect(await one.result).toBe('later');
});

test('without a reconcile, OutcomeUnknownError blocks at once, and a resume does not run the body again', async () => {
  const one = await run({ retries: { maxAttempts: 5, initialDelay: 1 } });
  expect((await blocked(one)).attention?.code).toBe('OUTCOME_UNKNOWN');
  expect(await intents(one.workflowId)).toEqual([{ seq: 0, name: 'charge', kind: 'step', attempts: 1 }]);
  const { epoch } = await one.holdfast.admin.get(one.workflowId);
  await one.holdfast.admin.resume(one.workflowId);
  await waitUntil(async () => {
    const { status, epoch: now } = await one.holdfast.admin.get(one.workflowId);
    return status === 'BLOCKED' && now > epoch;
  }, 'it is blocked again');
  expect(effects.bodies).toHaveLength(1);
});

test('code that swallows the error of a blocked step goes nowhere', async () => {
  let wentOn = false;
  const one = await run({}, async () => {
    await charge({}).catch(() => undefined);
    await runStep('next', () => {
      wentOn = true;
      return Promise.resolve();
    });
  });
  await blocked(one);
  expect(wentOn).toBe(false);
});

test('inside reconcile, step() is the step and workflow() the workflow', async () => {
  let seen: unknown;
  effects.answer = () => {
    const { name, seq, attempt, workflowId, signal } = step();
    seen = { name, seq, attempt, workflowId, epoch: workflow().epoch, aborted: signal.aborted };
    return Promise.resolve({ happened: true, result: '' });
  };
  const one = await run(withReconcile());
  await one.result;
  expect(seen).toEqual({ name: 'charge', seq: 0, attempt: 1, workflowId: one.workflowId, epoch: 1, aborted: false });
});

test('what reconcile adds to the outbox commits with the result that it brings; with other answers it is nothing', async () => {
  const topics = async (): Promise<unknown[]> => {
    const { rows } = await bed.sql.query(`SELECT payload FROM holdfast.outbox_event WHERE topic = 'found'`);
    return rows as unknown[];
  };
  effects.answer = async () => {
    const nth = effects.questions.length;
    await outbox.add('found', nth);
    return nth < 2 ? { stillUnknown: true } : { happened: true, result: 'charged' };
  };
  const one = await run(withReconcile());
  expect(await one.result).toBe('charged');
  expect(await topics()).toEqual([{ payload: '2' }]);
});

/** A second executor takes over while the body of the first one hangs. */
async function takeOver(options: Options): Promise<{ owner: Holdfast; workflowId: string; release: () => void }> {
  const begun = gate();
  const release = gate<string>();
  const { body } = effects;
  effects.body = () => {
    if (effects.bodies.length > 1) return body();
    begun.open();
    return release.opened;
  };
  const name = `taken-${String(++count)}`;
  const definition = defineWorkflow(name, () => charge(options));
  const zombie = await bed.launch({ workflows: [definition], executorId: name, pollInterval: '1h' });
  (await zombie.start(definition, { workflowId: name })).result().catch(() => undefined);
  await begun.opened;
  const owner = await bed.launch({ workflows: [definition], executorId: `${name}-owner` });
  await bed.expireLease(name);
  return {
    owner,
    workflowId: name,
    release: () => {
      release.open('by the zombie');
    },
  };
}

test('after a takeover, reconcile is asked under the original key before anything else', async () => {
  effects.answer = () => Promise.resolve({ happened: true, result: 'it had happened' });
  const { owner, workflowId, release } = await takeOver(withReconcile());
  expect(await owner.handle(workflowId).result()).toBe('it had happened');
  expect(effects.bodies).toHaveLength(1);
  expect(effects.questions).toEqual([[effects.bodies[0], 1]]);
  release();
});

test('after a takeover, what did not happen is run under the original key', async () => {
  effects.answer = () => Promise.resolve({ didNotHappen: true });
  effects.body = () => Promise.resolve('by the owner');
  const { owner, workflowId, release } = await takeOver(withReconcile());
  expect(await owner.handle(workflowId).result()).toBe('by the owner');
  expect(effects.bodies).toHaveLength(2);
  expect(new Set(effects.bodies).size).toBe(1);
  release();
});

test('atMostOnce: after a takeover the body is not run, and without reconcile the workflow is blocked', async () => {
  const { owner, workflowId, release } = await takeOver({ atMostOnce: true });
  await waitUntil(async () => (await owner.admin.get(workflowId)).status === 'BLOCKED', 'it is blocked');
  expect((await owner.admin.get(workflowId)).attention?.code).toBe('OUTCOME_UNKNOWN');
  release();
  expect(effects.bodies).toHaveLength(1);
});

test('atMostOnce: what did not happen is not run a second time, and fails with a typed error', async () => {
  effects.answer = () => Promise.resolve({ didNotHappen: true });
  const { owner, workflowId, release } = await takeOver(withReconcile({ atMostOnce: true }));
  await expect(owner.handle(workflowId).result()).rejects.toBeInstanceOf(StepDidNotHappenError);
  release();
  const timedOut = await run(withReconcile({ atMostOnce: true, timeout: 20 }), () => {
    effects.bodies.length = 0;
    effects.body = () => new Promise(() => undefined);
    return charge(withReconcile({ atMostOnce: true, timeout: 20 }));
  });
  const error: unknown = await timedOut.result.catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(StepDidNotHappenError);
  expect((error as Error).cause).toBeInstanceOf(StepTimeoutError);
  expect(effects.bodies).toHaveLength(1);
});

test('atMostOnce: a body that fails has failed, and its value is its value', async () => {
  effects.body = () => Promise.reject(new Error('declined'));
  await expect((await run({ atMostOnce: true })).result).rejects.toThrow('declined');
  effects.body = () => Promise.resolve('charged');
  const one = await run({ atMostOnce: true });
  expect(await one.result).toBe('charged');
  expect(effects.bodies).toHaveLength(2);
});

test('a step without these options records no intent', async () => {
  effects.body = () => Promise.resolve('charged');
  const one = await run({});
  await one.result;
  expect(await intents(one.workflowId)).toEqual([]);
});

test('a workflow that ends while nobody knows what became of a step is listed, whatever its outcome', async () => {
  const begun = gate();
  const one = await run({}, async () => {
    void charge({ atMostOnce: true });
    await begun.opened;
    return 'ended';
  });
  effects.body = () => {
    begun.open();
    return new Promise(() => undefined);
  };
  expect(await one.result).toBe('ended');
  const { status, attention } = await one.holdfast.admin.get(one.workflowId);
  expect(status).toBe('SUCCESS');
  expect(attention).toMatchObject({ code: 'OUTCOME_UNKNOWN' });
  expect(attention?.detail).toContain('step "charge" (number 0)');
});

test.each<[string, Record<string, unknown>]>([
  ['atMostOnce with retries', { atMostOnce: true, retries: { maxAttempts: 2 } }],
  ['atMostOnce that is no boolean', { atMostOnce: 'yes' }],
  ['reconcile that is no function', { reconcile: 1 }],
  ['the name of a method, where there is no class', { reconcile: 'findCharge' }],
  ['reconcileRetries without reconcile', { reconcileRetries: QUICK }],
  ['reconcileTimeout without reconcile', { reconcileTimeout: 1 }],
  ['a predicate for questions', { ...withReconcile(), reconcileRetries: { shouldRetry: () => true } }],
  ['no questions at all', { ...withReconcile(), reconcileRetries: { maxAttempts: 0 } }],
])('%s is refused before anything is written', (_, options) => {
  expect(() => runStep('charge', () => Promise.resolve('x'), options)).toThrow(HoldfastError);
  expect(() => runStep('charge', () => Promise.resolve('x'), options)).toThrow(
    expect.objectContaining({ code: 'INVALID_ARGUMENT' }),
  );
});

test('continueAsNew is refused while such a step is under way, and the run goes on', async () => {
  const begun = gate();
  const release = gate<string>();
  effects.body = () => {
    begun.open();
    return release.opened;
  };
  let refused: unknown;
  const name = `unknown-${String(++count)}`;
  const definition: (again: boolean) => Promise<string> = defineWorkflow(name, async (again: boolean) => {
    if (again) return 'next run';
    const charging = charge({ atMostOnce: true });
    await begun.opened;
    await continueAsNew(definition, true).catch((error: unknown) => {
      refused = error;
    });
    release.open('charged');
    await charging;
    return continueAsNew(definition, true);
  });
  const holdfast = await bed.launch({ workflows: [definition], executorId: name });
  expect(await (await holdfast.start(definition, { workflowId: name }, false)).result()).toBe('next run');
  expect(refused).toBeInstanceOf(StepUnderWayError);
});

test('a workflow that runs out of time while a step is under way ends with its error, and is listed', async () => {
  const name = `unknown-${String(++count)}`;
  const begun = gate();
  effects.body = () => {
    begun.open();
    return new Promise(() => undefined);
  };
  const definition = defineWorkflow(name, () => charge(withReconcile()), { timeout: 300 });
  const holdfast = await bed.launch({ workflows: [definition], executorId: name });
  const handle = await holdfast.start(definition, { workflowId: name });
  await begun.opened;
  await expect(handle.result()).rejects.toMatchObject({ code: 'WORKFLOW_TIMEOUT' });
  const { status, attention } = await holdfast.admin.get(name);
  expect([status, attention?.code]).toEqual(['ERROR', 'OUTCOME_UNKNOWN']);
});

test('a workflow whose time was up before its next execution came to the step is listed, too', async () => {
  const name = `unknown-${String(++count)}`;
  const begun = gate();
  effects.body = () => {
    begun.open();
    return new Promise(() => undefined);
  };
  const definition = defineWorkflow(
    name,
    async () => {
      // Code that takes its time in a replay, once: that execution ends without having come to the step.
      if (workflow().epoch === 2) await new Promise(() => undefined);
      return charge(withReconcile());
    },
    { timeout: '1h' },
  );
  const zombie = await bed.launch({ workflows: [definition], executorId: name, pollInterval: '1h' });
  (await zombie.start(definition, { workflowId: name })).result().catch(() => undefined);
  await begun.opened;
  await bed.sql.query(`UPDATE holdfast.workflow_status SET deadline = clock_timestamp() WHERE workflow_id = $1`, [
    name,
  ]);
  const owner = await bed.launch({ workflows: [definition], executorId: `${name} owner` });
  await bed.expireLease(name);
  await expect(owner.handle(name).result()).rejects.toMatchObject({ code: 'WORKFLOW_TIMEOUT' });
  expect((await owner.admin.get(name)).attention?.code).toBe('OUTCOME_UNKNOWN');
});

test('a workflow that is cancelled while a step is under way is listed; resumed, it asks before anything else', async () => {
  const name = `unknown-${String(++count)}`;
  const begun = gate();
  effects.body = () => {
    begun.open();
    return new Promise(() => undefined);
  };
  const definition = defineWorkflow(name, () => charge(withReconcile()));
  const holdfast = await bed.launch({ workflows: [definition], executorId: name });
  const handle = await holdfast.start(definition, { workflowId: name });
  await begun.opened;
  await holdfast.admin.cancel(name);
  expect((await holdfast.admin.get(name)).attention?.code).toBe('OUTCOME_UNKNOWN');
  effects.answer = () => Promise.resolve({ happened: true, result: 'it had happened' });
  await holdfast.admin.resume(name);
  expect(await handle.result()).toBe('it had happened');
  expect(effects.bodies).toHaveLength(1);
  expect((await holdfast.admin.get(name)).attention).toBeNull();
});

test('shut down in the body: the intent stays, and the next owner asks', async () => {
  const name = `unknown-${String(++count)}`;
  const begun = gate();
  effects.body = () => {
    begun.open();
    return new Promise(() => undefined);
  };
  effects.answer = () => Promise.resolve({ happened: true, result: 'it had happened' });
  const definition = defineWorkflow(name, () => charge(withReconcile()));
  const first = await bed.launch({ workflows: [definition], executorId: name });
  await first.start(definition, { workflowId: name });
  await begun.opened;
  await first.close();
  const second = await bed.launch({ workflows: [definition], executorId: `${name} again` });
  expect(await second.handle(name).result()).toBe('it had happened');
  expect(effects.bodies).toHaveLength(1);
});

test('a loser of a race whose outcome is unknown is asked for on replay, and the winner is the same', async () => {
  const name = `unknown-${String(++count)}`;
  const begun = gate();
  const hold = gate();
  effects.body = () => {
    begun.open();
    return new Promise(() => undefined);
  };
  effects.answer = () => Promise.resolve({ happened: true, result: 'charged' });
  const definition = defineWorkflow(name, async () => {
    const charging = charge(withReconcile());
    await begun.opened;
    const winner = await Promise.race([charging, runStep('fast', () => Promise.resolve('fast'))]);
    await runStep('hold', async () => {
      if (workflow().epoch === 1) await hold.opened;
    });
    return [winner, await charging];
  });
  const zombie = await bed.launch({ workflows: [definition], executorId: name, pollInterval: '1h' });
  (await zombie.start(definition, { workflowId: name })).result().catch(() => undefined);
  await waitUntil(
    async () => (await zombie.admin.steps(name)).items.some((one) => one.name === 'fast' && one.complete),
    'the race is won',
  );
  const owner = await bed.launch({ workflows: [definition], executorId: `${name} owner` });
  await bed.expireLease(name);
  expect(await owner.handle(name).result()).toEqual(['fast', 'charged']);
  expect(effects.bodies).toHaveLength(1);
  hold.open();
});

test('repaired and resumed in one call, the workflow goes on with what the person has said', async () => {
  const one = await run({ atMostOnce: true });
  await blocked(one);
  const repair = { happened: true, result: 'by hand' } as const;
  await one.holdfast.admin.repairStep(one.workflowId, { seq: 0, repair, resume: true });
  expect(await one.result).toBe('by hand');
  expect(effects.bodies).toHaveLength(1);
});

test('a person says that it did not happen: the body is run again, under the same key', async () => {
  const one = await run({ atMostOnce: true });
  await blocked(one);
  effects.body = () => Promise.resolve('charged');
  await one.holdfast.admin.repairStep(one.workflowId, { seq: 0, repair: { didNotHappen: true }, resume: true });
  expect(await one.result).toBe('charged');
  expect(effects.bodies).toHaveLength(2);
  expect(new Set(effects.bodies).size).toBe(1);
});

test('a failed step is retried, skipped, or given its true result, and the workflow goes on from there', async () => {
  for (const [repair, result] of [
    [{ retry: true }, 'charged'],
    [{ skip: true, result: 'skipped' }, 'skipped'],
    [{ happened: true, result: 'it had happened' }, 'it had happened'],
  ] as const) {
    effects.body = () => Promise.reject(new Error('declined'));
    const one = await run({});
    await expect(one.result).rejects.toThrow('declined');
    effects.body = () => Promise.resolve('charged');
    await one.holdfast.admin.repairStep(one.workflowId, { seq: 0, repair });
    expect(await one.holdfast.handle(one.workflowId).result()).toBe(result);
  }
});

test('a workflow that a live execution owns cannot be repaired', async () => {
  const begun = gate();
  const release = gate<string>();
  effects.body = () => {
    begun.open();
    return release.opened;
  };
  const one = await run(withReconcile());
  await begun.opened;
  const repair = { didNotHappen: true } as const;
  await expect(one.holdfast.admin.repairStep(one.workflowId, { seq: 0, repair })).rejects.toMatchObject({
    code: 'WORKFLOW_STATE',
    status: 'PENDING',
  });
  release.open('charged');
  expect(await one.result).toBe('charged');
});
