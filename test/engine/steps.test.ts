import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  defineWorkflow,
  NonRetryableError,
  RetryableError,
  runStep,
  step,
  workflow,
  type Holdfast,
} from '../../src/index.js';
import { createBed, gate, waitUntil, type Bed } from '../support/launch.js';

let bed: Bed;
let holdfast: Holdfast;
let scenario: () => Promise<unknown> = () => Promise.resolve();
const run = defineWorkflow('run', () => scenario());

beforeAll(async () => {
  bed = await createBed();
  holdfast = await bed.launch({ workflows: [run] });
});
afterAll(() => bed.close());

let count = 0;
async function execute<Result>(body: () => Promise<Result>): Promise<{ result: Promise<Result>; workflowId: string }> {
  scenario = body;
  const workflowId = `steps-${String(++count)}`;
  const handle = await holdfast.start(run, { workflowId });
  const result = handle.result() as Promise<Result>;
  result.catch(() => undefined);
  return { result, workflowId };
}

async function recorded(
  workflowId: string,
): Promise<{ seq: number; name: string; attempts: number; error: boolean }[]> {
  const { rows } = await bed.sql.query<{ seq: number; name: string; attempts: number; error: boolean }>(
    'SELECT seq, name, attempts, error IS NOT NULL AS error FROM holdfast.step_result WHERE workflow_id = $1 ORDER BY seq',
    [workflowId],
  );
  return rows;
}

test('C21 parallel steps get their numbers by the order of the calls, whatever the order of completion', async () => {
  const last = gate();
  const { result, workflowId } = await execute(() =>
    Promise.all([
      runStep('slow', async () => {
        await last.opened;
        return 'a';
      }),
      runStep('fast', () => Promise.resolve('b')),
      runStep('faster', () => {
        last.open();
        return Promise.resolve('c');
      }),
    ]),
  );
  expect(await result).toEqual(['a', 'b', 'c']);
  expect((await recorded(workflowId)).map(({ name }) => name)).toEqual(['slow', 'fast', 'faster']);
});

test('C21 allSettled tells each step its own end', async () => {
  const { result } = await execute(() =>
    Promise.allSettled([
      runStep('good', () => Promise.resolve(1)),
      runStep('bad', () => Promise.reject(new RangeError('no'))),
    ]),
  );
  const [good, bad] = await result;
  expect(good).toEqual({ status: 'fulfilled', value: 1 });
  expect(bad).toMatchObject({ status: 'rejected' });
});

test('C22 a rejected step that nobody awaits yet does not end the process, and its failure is on record', async () => {
  const rejections: unknown[] = [];
  const listener = (reason: unknown): void => void rejections.push(reason);
  process.on('unhandledRejection', listener);
  const { result, workflowId } = await execute(async () => {
    const late = runStep('fails', () => Promise.reject(new Error('early')));
    void runStep('never awaited', () => Promise.reject(new Error('unseen')));
    await runStep('other', () => new Promise((resolve) => setTimeout(resolve, 50)));
    return late.catch((error: unknown) => (error as Error).message);
  });
  expect(await result).toBe('early');
  process.off('unhandledRejection', listener);
  expect(rejections).toEqual([]);
  expect((await recorded(workflowId)).filter(({ error }) => error).map(({ name }) => name)).toEqual([
    'fails',
    'never awaited',
  ]);
});

test('C24 an attempt that takes too long fires its signal, and its late result is discarded', async () => {
  const late = gate();
  let aborted: unknown;
  const { result, workflowId } = await execute(() =>
    runStep(
      'slow',
      async () => {
        const { signal } = step();
        signal.addEventListener('abort', () => {
          aborted = signal.reason;
        });
        await late.opened;
        return 'too late';
      },
      { timeout: 20 },
    ),
  );
  await expect(result).rejects.toMatchObject({ code: 'STEP_TIMEOUT' });
  late.open();
  expect(aborted).toMatchObject({ code: 'STEP_TIMEOUT' });
  expect(await recorded(workflowId)).toMatchObject([{ name: 'slow', error: true }]);
});

test("C24 the workflow's deadline beats the step's timeout", async () => {
  const slow = defineWorkflow('slow', () => runStep('hangs', () => new Promise(() => undefined), { timeout: '1h' }));
  const other = await bed.launch({ workflows: [slow] });
  const handle = await other.start(slow, { timeout: 50 });
  await expect(handle.result()).rejects.toMatchObject({ code: 'WORKFLOW_TIMEOUT' });
  expect(await handle.status()).toBe('ERROR');
});

test('C25 a step is tried as often as its policy says, and all errors are kept', async () => {
  let attempts = 0;
  const { result, workflowId } = await execute(() =>
    runStep('flaky', () => Promise.reject(new Error(`failure ${String(++attempts)}`)), {
      retries: { maxAttempts: 3, initialDelay: 1, jitter: false },
    }),
  );
  const error = (await result.catch((thrown: unknown) => thrown)) as { code: string; errors: Error[]; cause: Error };
  expect(error.code).toBe('STEP_RETRIES_EXHAUSTED');
  expect(error.errors.map(({ message }) => message)).toEqual(['failure 1', 'failure 2', 'failure 3']);
  expect(error.cause.message).toBe('failure 3');
  expect(await recorded(workflowId)).toMatchObject([{ attempts: 3 }]);
});

test('C25 the predicate stops the attempts at once and the original error is kept', async () => {
  let attempts = 0;
  const { result } = await execute(() =>
    runStep('picky', () => Promise.reject(new TypeError(`failure ${String(++attempts)}`)), {
      retries: { maxAttempts: 5, initialDelay: 1, shouldRetry: (error) => !(error instanceof TypeError) },
    }),
  );
  await expect(result).rejects.toThrow(new TypeError('failure 1'));
  expect(attempts).toBe(1);
});

test('C25 a NonRetryableError ends the attempts, a RetryableError chooses when the next begins', async () => {
  let attempts = 0;
  const begun = performance.now();
  const { result } = await execute(() =>
    runStep(
      'mixed',
      () => {
        attempts += 1;
        return Promise.reject(
          attempts === 1 ? new RetryableError('soon', { afterMs: 5 }) : new NonRetryableError('never'),
        );
      },
      { retries: { maxAttempts: 10, initialDelay: '1h' } },
    ),
  );
  await expect(result).rejects.toMatchObject({ code: 'NON_RETRYABLE' });
  expect(attempts).toBe(2);
  expect(performance.now() - begun).toBeLessThan(60_000);
});

test.each([NaN, Infinity, '5s', -5])(
  'C25 a RetryableError whose afterMs is %s, as a Retry-After that was misread, does not keep its step waiting for ever',
  async (afterMs) => {
    let attempts = 0;
    const { result } = await execute(() =>
      runStep(
        'misread',
        () => {
          attempts += 1;
          return attempts === 1
            ? Promise.reject(new RetryableError('busy', { afterMs: afterMs as number }))
            : Promise.resolve('done');
        },
        { retries: { maxAttempts: 2, initialDelay: 1 } },
      ),
    );
    expect(await result).toBe('done');
  },
);

test.each(['a cancel', 'its time limit'])(
  'what listens to the signal of a step is in that step, when %s fires it',
  async (by) => {
    const began = gate();
    const heard: unknown[] = [];
    const { result, workflowId } = await execute(() =>
      runStep(
        'listens',
        () =>
          new Promise((_, reject) => {
            const { signal } = step();
            signal.addEventListener('abort', () => {
              // A listener that throws ends the process.
              heard.push([step().name, workflow().workflowId]);
              reject(signal.reason as Error);
            });
            began.open();
          }),
        by === 'a cancel' ? {} : { timeout: 5 },
      ),
    );
    await began.opened;
    if (by === 'a cancel') await holdfast.admin.cancel(workflowId);
    await expect(result).rejects.toMatchObject({ code: by === 'a cancel' ? 'WORKFLOW_CANCELLED' : 'STEP_TIMEOUT' });
    await waitUntil(() => heard.length > 0, 'the signal has fired');
    expect(heard).toEqual([['listens', workflowId]]);
  },
);

test('C51 a result that cannot be stored is the recorded error of its step, and the body is not run again', async () => {
  let bodies = 0;
  const { result, workflowId } = await execute(async () => {
    const error: unknown = await runStep('leaks', () => {
      bodies += 1;
      return Promise.resolve({ items: [{ callback: () => 1 }] });
    }).catch((thrown: unknown) => thrown);
    return (error as { code: string; path: string }).path;
  });
  expect(await result).toContain('items[0].callback');
  expect(bodies).toBe(1);
  expect(await recorded(workflowId)).toMatchObject([{ error: true }]);
});

test('C51 an input that cannot be stored is refused before anything is written', async () => {
  const odd = defineWorkflow('odd', (input: unknown) => Promise.resolve(input));
  const other = await bed.launch({ workflows: [odd] });
  await expect(other.start(odd, { workflowId: 'odd-1' }, { f: Symbol('x') })).rejects.toMatchObject({
    code: 'VALUE_NOT_SERIALIZABLE',
  });
  await expect(other.handle('odd-1').status()).rejects.toMatchObject({ code: 'WORKFLOW_NOT_FOUND' });
});

test('C52 a value of 20 MiB is refused with its size, and neighbours are unharmed', async () => {
  const { result } = await execute(() =>
    Promise.allSettled([
      runStep('huge', () => Promise.resolve('x'.repeat(20 * 1024 * 1024))),
      runStep('small', () => Promise.resolve('y')),
    ]),
  );
  const [huge, small] = await result;
  expect((huge as PromiseRejectedResult).reason).toMatchObject({
    code: 'PAYLOAD_TOO_LARGE',
    limitBytes: 16 * 1024 * 1024,
  });
  expect(small).toMatchObject({ value: 'y' });
});

test.each<[string, () => unknown]>([
  ['a string', () => 'just text'],
  ['undefined', () => undefined],
  ['null', () => null],
  ['a frozen object', () => Object.freeze({ reason: 'frozen' })],
  [
    'an error with a throwing getter',
    () =>
      Object.defineProperty(new Error('trap'), 'detail', {
        enumerable: true,
        get: () => {
          throw new Error('getter');
        },
      }),
  ],
  [
    'a proxy that throws',
    () =>
      new Proxy(
        {},
        {
          get: () => {
            throw new Error('trap');
          },
          ownKeys: () => {
            throw new Error('trap');
          },
          getPrototypeOf: () => {
            throw new Error('trap');
          },
        },
      ),
  ],
])('C29 a workflow that throws %s reaches an outcome', async (_, thrown) => {
  const { result, workflowId } = await execute(() => {
    throw thrown();
  });
  await result.then(
    () => expect.fail('it should have been rejected'),
    () => undefined,
  );
  expect(await holdfast.handle(workflowId).status()).toBe('ERROR');
});

test('C30 an error comes back with class, message, cause, own properties and aggregate', async () => {
  const { workflowId } = await execute(() =>
    Promise.reject(
      Object.assign(new AggregateError([new RangeError('one'), 'two'], 'all', { cause: new TypeError('why') }), {
        orderId: 7,
      }),
    ),
  );
  const error = (await holdfast
    .handle(workflowId)
    .result()
    .catch((thrown: unknown) => thrown)) as AggregateError & {
    orderId: number;
  };
  expect(error).toBeInstanceOf(AggregateError);
  expect(error.message).toBe('all');
  expect(error.errors[0]).toBeInstanceOf(RangeError);
  expect(error.cause).toBeInstanceOf(TypeError);
  expect(error.orderId).toBe(7);
});

test('a step called outside a workflow, or inside another step, is a plain call', async () => {
  expect(await runStep('plain', () => Promise.resolve(3))).toBe(3);
  const { result, workflowId } = await execute(() =>
    runStep('outer', () => runStep('inner', () => Promise.resolve(4))),
  );
  expect(await result).toBe(4);
  expect((await recorded(workflowId)).map(({ name }) => name)).toEqual(['outer']);
});

test('a step still running when its workflow ends is aborted and writes nothing', async () => {
  const late = gate();
  let signal: AbortSignal | undefined;
  const { result, workflowId } = await execute(() => {
    void runStep('dangling', async () => {
      signal = step().signal;
      await late.opened;
    });
    return runStep('main', () => Promise.resolve('done'));
  });
  expect(await result).toBe('done');
  expect(signal?.aborted).toBe(true);
  late.open();
  await waitUntil(async () => (await holdfast.handle(workflowId).status()) === 'SUCCESS', 'it ends');
  expect((await recorded(workflowId)).map(({ name }) => name)).toEqual(['main']);
});

test('a thousand handles wait for one outcome with one query a poll', async () => {
  const go = gate();
  const { workflowId } = await execute(async () => {
    await go.opened;
    return workflow().epoch;
  });
  const other = await bed.launch({ workflows: [] as never[] });
  const results = Promise.all(Array.from({ length: 1_000 }, () => other.handle<number>(workflowId).result()));
  go.open();
  expect(new Set(await results)).toEqual(new Set([1]));
});

test('the idempotency key of a step is the same for every attempt', async () => {
  const keys: string[] = [];
  const { result } = await execute(() =>
    runStep(
      'keyed',
      () => {
        keys.push(step().idempotencyKey);
        return keys.length < 3 ? Promise.reject(new Error('again')) : Promise.resolve();
      },
      { retries: { maxAttempts: 3, initialDelay: 1 } },
    ),
  );
  await result;
  expect(keys).toHaveLength(3);
  expect(new Set(keys).size).toBe(1);
});
