import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import {
  continueAsNew,
  defineUpdate,
  defineWorkflow,
  Holdfast,
  receive,
  runStep,
  sleep,
  step,
  uuid,
  workflow,
} from '../../src/index.js';
import { enterHistory, HISTORY_LIMIT } from '../../src/engine/history-limit.js';
import { createBed, gate, silentLogger, waitUntil, type Bed } from '../support/launch.js';
import { startPgProxyFor } from '../support/pg-proxy.js';

let bed: Bed;
let holdfast: Holdfast;
const seen: { readonly key: string; readonly seq: number; readonly round: number }[] = [];
const body = (round: number): Promise<number> =>
  runStep('body', async () => {
    seen.push({ key: step().idempotencyKey, seq: step().seq, round });
    return Promise.resolve(round);
  });

const rounds = defineWorkflow('rounds', async (round: number, last: number): Promise<string> => {
  await body(round);
  await body(round);
  if (round < last) return continueAsNew(rounds, round + 1, last);
  return `${String(round)} at ${String(workflow().epoch)}`;
});

/** What a run does is the test's to say. */
let scenario: (round: number) => Promise<unknown> = () => Promise.resolve();
const run = defineWorkflow('run', (round: number): Promise<unknown> => scenario(round), { input: z.number().max(10) });
const child = defineWorkflow('child', () => childGate.opened);
let childGate = gate<string>();

beforeAll(async () => {
  bed = await createBed();
  holdfast = await bed.launch({
    workflows: [rounds, run, child],
    queues: [{ name: 'narrow', concurrency: 1 }],
  });
});
afterAll(() => bed.close());

const start = (workflowId: string, round = 0) => holdfast.start(run, { workflowId }, round);
async function recordedSeqs(workflowId: string): Promise<number[]> {
  const { items } = await holdfast.admin.steps(workflowId);
  return items.map(({ seq }) => seq);
}

test('a workflow continues as new under its ID: other arguments, no history, the same handle', async () => {
  const handle = await holdfast.start(rounds, { workflowId: 'counts' }, 1, 4);
  expect(await handle.result()).toBe('4 at 4');
  const { items } = await holdfast.admin.ownership('counts');
  expect(items.map(({ reason, endedHow }) => [reason, endedHow])).toEqual([
    ['claimed', 'completed'],
    ['claimed', 'continued'],
    ['claimed', 'continued'],
    ['started', 'continued'],
  ]);
  expect(await holdfast.admin.get('counts', { payload: true })).toMatchObject({
    firstStep: 9,
    attempts: 1,
    input: { value: [4, 4] },
  });
  expect(await recordedSeqs('counts')).toEqual([9, 10]);
});

test('numbers of steps go on over the runs, so that no idempotency key comes a second time', async () => {
  seen.length = 0;
  await (await holdfast.start(rounds, {}, 1, 3)).result();
  expect(seen.map(({ round }) => round)).toEqual([1, 1, 2, 2, 3, 3]);
  expect(seen.map(({ seq }) => seq)).toEqual([0, 1, 3, 4, 6, 7]);
  expect(new Set(seen.map(({ key }) => key)).size).toBe(6);
});

test('the number of a call that is still open is not given out again either', async () => {
  const keys: string[] = [];
  scenario = async (round) => {
    if (round === 1) return runStep('open', () => Promise.resolve([...keys, step().idempotencyKey]));
    void runStep('open', () => {
      keys.push(step().idempotencyKey);
      return new Promise(() => undefined);
    });
    await runStep('other', () => Promise.resolve());
    return continueAsNew(run, 1);
  };
  const [first, second] = (await (await start('open')).result()) as string[];
  expect(first).toBeDefined();
  expect(second).not.toBe(first);
  expect(await recordedSeqs('open')).toEqual([3]);
});

test('the budget of attempts is fresh in each run', async () => {
  const handle = await holdfast.start(rounds, { maxAttempts: 2 }, 1, 8);
  expect(await handle.result()).toBe('8 at 8');
});

test('C52 one run can make 20,000 durable calls; at the limit it can still continue as new', async () => {
  scenario = async (round) => {
    if (round === 1) return uuid().then(() => 'went on');
    const calls = await Promise.allSettled(Array.from({ length: 20_001 }, () => uuid()));
    const refused = calls.flatMap((call) => (call.status === 'rejected' ? [call.reason as unknown] : []));
    expect(refused).toMatchObject([
      { code: 'HISTORY_LIMIT', message: expect.stringMatching(/continueAsNew/) as unknown },
    ]);
    return continueAsNew(run, 1);
  };
  expect(await (await start('long')).result()).toBe('went on');
  expect(await recordedSeqs('long')).toEqual([20_002]);
});

test('a run that becomes long is warned of once, well before its limit', () => {
  const warnings: unknown[] = [];
  const logger = { ...silentLogger, warn: (_: string, details: unknown) => void warnings.push(details) };
  for (let call = 0; call < HISTORY_LIMIT; call++) enterHistory(call, 'long', logger);
  expect(warnings).toEqual([{ workflowId: 'long', calls: HISTORY_LIMIT / 2 }]);
});

test('rewind and fork to before the run are refused with the range; from its beginning on they work', async () => {
  await (await holdfast.start(rounds, { workflowId: 'bounded' }, 1, 2)).result();
  const refused = { code: 'STEP_NOT_FOUND', message: expect.stringMatching(/from 3 to 5/) as unknown };
  await expect(holdfast.admin.rewind('bounded', { toStep: 2 })).rejects.toMatchObject(refused);
  await expect(holdfast.admin.rewind('bounded', { toStep: 6 })).rejects.toMatchObject(refused);
  await expect(holdfast.admin.fork('bounded', { fromStep: 2 })).rejects.toMatchObject(refused);
  seen.length = 0;
  const fork = await holdfast.admin.fork('bounded', { fromStep: 4 });
  expect(await holdfast.handle(fork.workflowId).result()).toBe('2 at 1');
  expect(seen.map(({ seq }) => seq)).toEqual([4]);
  await holdfast.admin.rewind('bounded', { toStep: 3 });
  expect(await holdfast.handle('bounded').result()).toBe('2 at 3');
  expect(seen.map(({ seq }) => seq)).toEqual([4, 3, 4]);
});

test('a rewind of a run that has recorded nothing keeps its first number', async () => {
  const reached = gate();
  scenario = async (round) => {
    if (round === 0) return continueAsNew(run, 1);
    reached.open();
    await new Promise(() => undefined);
    return undefined;
  };
  await start('empty');
  await reached.opened;
  scenario = () => runStep('numbered', () => Promise.resolve(step().seq));
  await expect(holdfast.admin.rewind('empty', { toStep: 0 })).rejects.toMatchObject({
    message: expect.stringMatching(/from 1 to 1/) as unknown,
  });
  await holdfast.admin.rewind('empty', { toStep: 1 });
  expect(await holdfast.handle('empty').result()).toBe(1);
});

test('arguments that do not fit are refused where they are given, recorded, and the run goes on', async () => {
  const caught: unknown[] = [];
  const hanging = gate();
  const scene = (then: () => Promise<unknown>) => async (): Promise<unknown> => {
    await continueAsNew(run, 11).catch((error: unknown) => caught.push(error));
    await runStep('after', () => Promise.resolve());
    return then();
  };
  scenario = scene(async () => {
    hanging.open();
    return new Promise(() => undefined);
  });
  await start('refused');
  await hanging.opened;
  await holdfast.admin.cancel('refused');
  scenario = scene(() => Promise.resolve('went on'));
  await holdfast.admin.resume('refused');
  expect(await holdfast.handle('refused').result()).toBe('went on');
  expect(caught).toMatchObject([{ code: 'SCHEMA_VIOLATION' }, { code: 'SCHEMA_VIOLATION' }]);
  expect((await holdfast.admin.steps('refused')).items).toMatchObject([{ kind: 'continue', complete: true }, {}]);
});

test('another workflow, wrong arguments and a call from elsewhere are refused', async () => {
  scenario = () => continueAsNew(child);
  await expect(start('other').then((handle) => handle.result())).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
  await expect(continueAsNew(run, 1)).rejects.toMatchObject({ code: 'OUTSIDE_WORKFLOW' });
  // @ts-expect-error the arguments are those of the workflow
  await expect(continueAsNew(run, 'one')).rejects.toMatchObject({ code: 'OUTSIDE_WORKFLOW' });
});

test('code that swallows the end of its run changes nothing any more', async () => {
  const bodies: string[] = [];
  scenario = async (round) => {
    if (round === 1) return 'continued';
    await continueAsNew(run, 1).catch(() => undefined);
    await runStep('after', () => Promise.resolve(bodies.push('after'))).catch(() => undefined);
    return 'swallowed';
  };
  expect(await (await start('swallowed')).result()).toBe('continued');
  expect(bodies).toEqual([]);
});

test('C9 a lost reply: the retry finds that the run has been ended, and the next run begins once', async () => {
  const proxy = await startPgProxyFor(bed.database.url);
  const begun: number[] = [];
  const lonely = defineWorkflow('lonely', async (round: number): Promise<number> => {
    begun.push(round);
    await uuid();
    return round === 0 ? continueAsNew(lonely, 1) : round;
  });
  const lossy = await Holdfast.launch({
    database: proxy.connectionString(bed.database.url),
    workflows: [lonely],
    pollInterval: 20,
    notifications: false,
    logger: silentLogger,
  });
  const lost = proxy.arm({ do: 'drop-reply' }, /continue_workflow/, { times: 1 });
  expect(await (await lossy.start(lonely, { workflowId: 'lonely' }, 0)).result()).toBe(1);
  expect(lost.hits).toBe(1);
  expect(begun).toEqual([0, 1]);
  expect(await holdfast.admin.get('lonely')).toMatchObject({ epoch: 2, firstStep: 2, status: 'SUCCESS' });
  await lossy.close();
  await proxy.close();
});

test('an execution that has lost its workflow does not continue it', async () => {
  const zombie = await bed.launch({ workflows: [run], executorId: 'zombie', maxConcurrent: 1 });
  const [reached, leave] = [gate(), gate()];
  const inputs: unknown[] = [];
  scenario = async (round) => {
    inputs.push(round);
    reached.open();
    await leave.opened;
    return continueAsNew(run, 7);
  };
  await zombie.start(run, { workflowId: 'stolen' }, 0);
  await reached.opened;
  scenario = (round) => Promise.resolve(`finished ${String(round)}`);
  await bed.expireLease('zombie');
  await waitUntil(async () => (await holdfast.admin.get('stolen')).status === 'SUCCESS', 'it is taken over and ends');
  leave.open();
  expect(await zombie.handle('stolen').result()).toBe('finished 0');
  expect(await holdfast.admin.get('stolen', { payload: true })).toMatchObject({ firstStep: 0, input: { value: [0] } });
});

test('version conflicts on the way do not harm it', async () => {
  scenario = async (round) => {
    if (round === 1) return 'continued';
    await bed.sql.query(
      `UPDATE holdfast.workflow_status SET record_version = record_version + 1 WHERE workflow_id = $1`,
      ['bumped'],
    );
    return continueAsNew(run, 1);
  };
  expect(await (await start('bumped')).result()).toBe('continued');
});

/** Has something reach a run that waits, and be written just before the run ends: its row is locked until both are on their way. */
async function atTheEnd(workflowId: string, arrives: () => Promise<unknown>, endRun: () => void): Promise<void> {
  await bed.sql.query('BEGIN');
  await bed.sql.query('SELECT FROM holdfast.workflow_status WHERE workflow_id = $1 FOR NO KEY UPDATE', [workflowId]);
  const { lockedRows } = holdfast.metrics();
  await arrives();
  await waitUntil(() => holdfast.metrics().lockedRows > lockedRows, 'it is being received');
  endRun();
  await new Promise(setImmediate);
  await bed.sql.query('COMMIT');
}

test('a message that is taken at the very end of a run is not lost: the next run receives it', async () => {
  const [waits, leave] = [gate(), gate()];
  scenario = async (round) => {
    const message = receive('t');
    if (round === 1) return message;
    // Behind the write that finds nothing.
    await uuid();
    waits.open();
    await leave.opened;
    return continueAsNew(run, 1);
  };
  const handle = await start('late message');
  await waits.opened;
  await atTheEnd(
    'late message',
    () => handle.send('t', 'hello'),
    () => {
      leave.open();
    },
  );
  expect(await handle.result()).toBe('hello');
});

test('an update that is taken at the very end of a run is carried out by the next one', async () => {
  const [waits, leave, end] = [gate(), gate(), gate()];
  const double = defineUpdate<number, string>('double');
  scenario = async (round) => {
    double.handle((n) => `${String(2 * n)} in run ${String(round)}`);
    await uuid();
    waits.open();
    await leave.opened;
    if (round === 0) return continueAsNew(run, 1);
    return end.opened;
  };
  const handle = await start('late update');
  await waits.opened;
  let answer: Promise<string> | undefined;
  const arrives = (): Promise<void> => {
    answer = handle.update(double, 21);
    return Promise.resolve();
  };
  await atTheEnd('late update', arrives, () => {
    leave.open();
  });
  expect(await answer).toBe('42 in run 1');
  end.open();
  await handle.result();
});

test('children of an earlier run go on, and are cancelled with the workflow', async () => {
  childGate = gate<string>();
  const asleep = gate();
  scenario = async (round) => {
    if (round === 0) {
      await holdfast.start(child, { workflowId: 'kept child' });
      return continueAsNew(run, 1);
    }
    asleep.open();
    await sleep('1h');
    return undefined;
  };
  await start('parent');
  await asleep.opened;
  expect(await holdfast.handle('kept child').status()).toBe('PENDING');
  await holdfast.admin.cancel('parent');
  expect(await holdfast.handle('kept child').status()).toBe('CANCELLED');
});

test('a parent that waits for a child gets the outcome of its last run', async () => {
  scenario = () => rounds(1, 3);
  expect(await (await start('waits')).result()).toBe('3 at 3');
});

test('the deadline is that of the workflow: runs do not put it off', async () => {
  const deadlines: unknown[] = [];
  scenario = async (round) => {
    await runStep('look', async () => {
      deadlines.push((await holdfast.admin.get('limited')).deadline);
    });
    return round < 2 ? continueAsNew(run, round + 1) : 'done';
  };
  await (await holdfast.start(run, { workflowId: 'limited', timeout: '1h' }, 0)).result();
  expect(deadlines).toHaveLength(3);
  expect(deadlines[0]).toBeInstanceOf(Date);
  expect(new Set(deadlines.map(String)).size).toBe(1);
});

test('in a queue it gives its slot up and is in line again at the place it had', async () => {
  const order: string[] = [];
  const [reached, leave] = [gate(), gate()];
  scenario = async (round) => {
    order.push(`${workflow().workflowId} ${String(round)}`);
    if (workflow().workflowId === 'first' && round === 0) {
      reached.open();
      await leave.opened;
      return continueAsNew(run, 1);
    }
    return undefined;
  };
  const first = await holdfast.enqueue(run, { queue: 'narrow', workflowId: 'first' }, 0);
  await reached.opened;
  const second = await holdfast.enqueue(run, { queue: 'narrow', workflowId: 'second' }, 0);
  leave.open();
  await Promise.all([first.result(), second.result()]);
  expect(order).toEqual(['first 0', 'first 1', 'second 0']);
});

test('the next run can be claimed by an executor of another app version', async () => {
  const other = (version: string) =>
    defineWorkflow('moving', async (round: number): Promise<string> => {
      if (round === 0) {
        started.open();
        await deployed.opened;
        return continueAsNew(old, 1);
      }
      return Promise.resolve(`finished on ${version}`);
    });
  const [started, deployed] = [gate(), gate()];
  const old = other('one');
  const one = await bed.launch({ workflows: [old], appVersion: 'one', maxConcurrent: 1, shutdownTimeout: 5_000 });
  const handle = await one.start(old, { workflowId: 'moving' }, 0);
  await started.opened;
  const closing = one.close();
  const two = await bed.launch({ workflows: [other('two')], appVersion: 'two' });
  deployed.open();
  await closing;
  expect(await two.handle(handle.workflowId).result()).toBe('finished on two');
  expect(await two.admin.get('moving')).toMatchObject({ appVersion: 'two', epoch: 2 });
});
