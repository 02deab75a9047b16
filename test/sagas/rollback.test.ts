import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import {
  defineWorkflow,
  type Holdfast,
  NonRetryableError,
  onRollback,
  runStep,
  sleep,
  Step,
  step,
  type StepDetails,
} from '../../src/index.js';
import { createBed, gate, waitUntil, type Bed } from '../support/launch.js';

/** What the outside world has seen, in order. */
const ledger: string[] = [];
const keys = new Map<string, Set<string>>();

function note(entry: string): void {
  ledger.push(entry);
  const seen = keys.get(entry) ?? new Set();
  keys.set(entry, seen.add(step().idempotencyKey));
}

const FAST = { maxAttempts: 3, initialDelay: 1, jitter: false } as const;

class Shop {
  @Step({ compensate: 'release' })
  static async reserve(item: string): Promise<string> {
    note(`reserve ${item}`);
    return Promise.resolve(`r-${item}`);
  }

  static async release(reservation: string, item: string): Promise<void> {
    note(`release ${reservation} of ${item}`);
    return Promise.resolve();
  }

  @Step({ compensate: 'refund' })
  static async charge(cents: number): Promise<{ id: string; cents: number }> {
    note(`charge ${String(cents)}`);
    return Promise.resolve({ id: 'c-1', cents });
  }

  @Step({ retries: FAST })
  static async refund(charge: { id: string; cents: number }, cents: number): Promise<void> {
    note(`refund ${charge.id} ${String(charge.cents)} ${String(cents)}`);
    if (refundFails > 0) {
      refundFails -= 1;
      throw new Error('the bank is closed');
    }
    return Promise.resolve();
  }
}

const order = defineWorkflow('order', async (items: string[], cents: number): Promise<string> => {
  for (const item of items) await Shop.reserve(item);
  await Shop.charge(cents);
  onRollback(() => {
    note('unannounce');
    return Promise.resolve();
  });
  await scenario();
  return 'done';
});

let refundFails = 0;
let scenario: () => Promise<unknown> = () => Promise.resolve();
const run = defineWorkflow('run', (): Promise<unknown> => scenario());

let bed: Bed;
let holdfast: Holdfast;
beforeAll(async () => {
  bed = await createBed();
  holdfast = await bed.launch({ workflows: [order, run] });
});
afterAll(() => bed.close());
beforeEach(() => {
  ledger.length = 0;
  keys.clear();
  refundFails = 0;
});

async function stepsOf(workflowId: string): Promise<readonly StepDetails[]> {
  return (await holdfast.admin.steps(workflowId)).items;
}

test('when a workflow fails, what it has done is undone in reverse, with the results and arguments of the steps', async () => {
  scenario = () => Promise.reject(new TypeError('out of stock'));
  const handle = await holdfast.start(order, { workflowId: 'fails' }, ['a', 'b'], 5);
  await expect(handle.result()).rejects.toThrow(new TypeError('out of stock'));
  expect(ledger).toEqual([
    'reserve a',
    'reserve b',
    'charge 5',
    'unannounce',
    'refund c-1 5 5',
    'release r-b of b',
    'release r-a of a',
  ]);
  expect(await handle.status()).toBe('ERROR');
  expect((await stepsOf('fails')).map(({ seq, kind, name, complete }) => [seq, kind, name, complete])).toEqual([
    [0, 'step', 'reserve', true],
    [1, 'step', 'reserve', true],
    [2, 'step', 'charge', true],
    [3, 'rollback', 'failed', true],
    [4, 'compensation', 'onRollback', true],
    [5, 'compensation', 'charge', true],
    [6, 'compensation', 'reserve', true],
    [7, 'compensation', 'reserve', true],
  ]);
  const rollback = await holdfast.admin.rollback('fails', { payload: true });
  expect(rollback).toMatchObject({ cause: 'failed', seq: 3, error: { value: { message: 'out of stock' } } });
  expect(rollback?.compensations.map(({ seq, name, undoes, state }) => [seq, name, undoes, state])).toEqual([
    [4, 'onRollback', null, 'done'],
    [5, 'charge', 2, 'done'],
    [6, 'reserve', 1, 'done'],
    [7, 'reserve', 0, 'done'],
  ]);
});

test('a workflow that succeeds, or fails with nothing to undo, is not rolled back', async () => {
  scenario = () => Promise.resolve();
  expect(await (await holdfast.start(order, { workflowId: 'succeeds' }, ['a'], 5)).result()).toBe('done');
  expect(ledger).toEqual(['reserve a', 'charge 5']);
  expect(await holdfast.admin.rollback('succeeds')).toBeNull();
  scenario = async () => {
    await runStep('plain', () => Promise.resolve());
    throw new Error('so it goes');
  };
  await expect((await holdfast.start(run, { workflowId: 'nothing' })).result()).rejects.toThrow('so it goes');
  expect((await stepsOf('nothing')).map(({ kind }) => kind)).toEqual(['step']);
});

test('cancel with compensation undoes what was done and ends as CANCELLED; a plain cancel undoes nothing', async () => {
  scenario = () => sleep('1h');
  for (const compensate of [true, false]) {
    ledger.length = 0;
    const workflowId = `cancelled-${String(compensate)}`;
    const handle = await holdfast.start(order, { workflowId }, ['a'], 5);
    await waitUntil(async () => (await stepsOf(workflowId)).length === 3, 'it sleeps');
    await handle.cancel({ compensate });
    await expect(handle.result()).rejects.toMatchObject({ code: 'WORKFLOW_CANCELLED' });
    expect(await handle.status()).toBe('CANCELLED');
    expect(ledger.slice(2)).toEqual(compensate ? ['unannounce', 'refund c-1 5 5', 'release r-a of a'] : []);
  }
});

test('a compensation that fails for good blocks the workflow and keeps the rest listed; resume tries it again', async () => {
  scenario = () => Promise.reject(new Error('no'));
  refundFails = 3;
  const handle = await holdfast.start(order, { workflowId: 'blocked' }, ['a'], 5);
  await waitUntil(async () => (await handle.status()) === 'BLOCKED', 'it is blocked');
  expect(ledger.slice(2)).toEqual(['unannounce', ...Array<string>(3).fill('refund c-1 5 5')]);
  expect((await holdfast.admin.get('blocked')).attention).toMatchObject({
    code: 'COMPENSATION_FAILED',
    detail: expect.stringContaining('"charge" (number 4)') as string,
  });
  const rollback = await holdfast.admin.rollback('blocked', { payload: true });
  expect(rollback?.compensations.map(({ state }) => state)).toEqual(['done', 'failed', 'pending']);
  expect(rollback?.compensations[1]?.error).toMatchObject({ value: { code: 'STEP_RETRIES_EXHAUSTED' } });
  await holdfast.admin.resume('blocked');
  await expect(handle.result()).rejects.toThrow('no');
  expect(ledger.slice(6)).toEqual(['refund c-1 5 5', 'release r-a of a']);
  expect(keys.get('refund c-1 5 5')?.size).toBe(1);
});

test('a compensation that was done by hand is recorded as such, and the rollback goes on behind it', async () => {
  scenario = () => Promise.reject(new Error('no'));
  refundFails = 3;
  const handle = await holdfast.start(order, { workflowId: 'by-hand' }, ['a'], 5);
  await waitUntil(async () => (await handle.status()) === 'BLOCKED', 'it is blocked');
  await expect(holdfast.admin.skipCompensation('by-hand', { seq: 3 })).rejects.toMatchObject({
    code: 'STEP_NOT_FOUND',
  });
  await holdfast.admin.skipCompensation('by-hand', { seq: 4, actor: 'ada', reason: 'refunded at the counter' });
  await expect(holdfast.admin.skipCompensation('by-hand', { seq: 4 })).rejects.toMatchObject({
    code: 'STEP_NOT_FOUND',
  });
  await holdfast.admin.resume('by-hand');
  await expect(handle.result()).rejects.toThrow('no');
  expect(ledger.slice(6)).toEqual(['release r-a of a']);
  const rollback = await holdfast.admin.rollback('by-hand');
  expect(rollback?.compensations.map(({ state }) => state)).toEqual(['done', 'by-hand', 'done']);
  const { items } = await holdfast.admin.audit('by-hand');
  expect(items.map(({ verb, actor }) => [verb, actor])).toContainEqual(['skip-compensation', 'ada']);
});

test('a workflow that runs out of time is rolled back, and ends with the error of the deadline', async () => {
  const body = gate();
  scenario = () => runStep('long', () => body.opened);
  const handle = await holdfast.start(order, { workflowId: 'late', timeout: 2_000 }, ['a'], 5);
  await expect(handle.result()).rejects.toMatchObject({ code: 'WORKFLOW_TIMEOUT' });
  expect(ledger.slice(2)).toEqual(['unannounce', 'refund c-1 5 5', 'release r-a of a']);
  body.open();
  expect(await holdfast.admin.rollback('late')).toMatchObject({ cause: 'timed-out' });
});

test('a step that failed for good is not compensated', async () => {
  scenario = async () => {
    const compensate = (): Promise<void> => {
      note('undo');
      return Promise.resolve();
    };
    await runStep('works', () => Promise.resolve(), { compensate });
    await runStep('fails', () => Promise.reject(new NonRetryableError('declined')), { compensate }).catch(
      () => undefined,
    );
    throw new Error('enough');
  };
  await expect((await holdfast.start(run, { workflowId: 'declined' })).result()).rejects.toThrow('enough');
  expect(ledger).toEqual(['undo']);
});

test('a compensation that never answers is given up after its time limit, with its signal fired, and tried again', async () => {
  const silent = gate();
  scenario = () => {
    const undo = (): Promise<void> => {
      note('undo');
      step().signal.addEventListener('abort', () => ledger.push('aborted'));
      return step().attempt === 1 ? silent.opened : Promise.resolve();
    };
    onRollback(undo, { timeout: 20, retries: FAST });
    return Promise.reject(new NonRetryableError('enough'));
  };
  await expect((await holdfast.start(run, { workflowId: 'silent' })).result()).rejects.toThrow('enough');
  expect(ledger).toEqual(['undo', 'aborted', 'undo']);
  silent.open();
});
