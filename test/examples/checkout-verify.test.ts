import { expect, test } from 'vitest';
import type { BodyRun } from '../../examples/checkout/outside-world.js';
import type { RecordedStep } from '../../examples/checkout/records.js';
import { BODIES, type OrderFacts, PATH, violationsOf } from '../../examples/checkout/verify.js';

const run = (step: string, epoch: number, idempotencyKey = step): BodyRun => ({
  orderId: 'one',
  step,
  epoch,
  idempotencyKey,
  processId: 1,
});

const step = (name: string, epoch: number, output: unknown = name): RecordedStep => ({
  seq: PATH.indexOf(name),
  name,
  kind: name === 'sleep' ? 'sleep' : 'step',
  epoch,
  output,
});

/** An order that went as it should: killed in its charge, and recovered. */
const recovered: OrderFacts = {
  order: { id: 'one', item: 'Tea pot', quantity: 1, cents: 1 },
  role: 'killed',
  status: 'SUCCESS',
  epoch: 2,
  recorded: [step('reserve', 1), step('charge', 2), step('sleep', 2), step('ship', 2)],
  recordedBefore: [step('reserve', 1)],
  runs: [run('reserve', 1), run('charge', 1), run('charge', 2), run('ship', 2)],
};

/** An order to which nothing happened. */
const undisturbed: OrderFacts = {
  ...recovered,
  role: 'undisturbed',
  epoch: 1,
  recorded: PATH.map((name) => step(name, 1)),
  recordedBefore: undefined,
  runs: BODIES.map((name) => run(name, 1)),
};

test('orders that went as promised have no violations', () => {
  expect(violationsOf(recovered)).toEqual([]);
  expect(violationsOf(undisturbed)).toEqual([]);
});

test.each<[what: string, facts: OrderFacts, violation: string]>([
  ['did not end', { ...recovered, status: 'PENDING' }, 'ended as PENDING'],
  ['lacks a step', { ...recovered, recorded: recovered.recorded.slice(0, 3) }, 'has the steps'],
  ['has a step twice', { ...recovered, recorded: [step('reserve', 1), ...recovered.recorded] }, 'has the steps'],
  [
    'ran a step too often',
    { ...undisturbed, runs: [...undisturbed.runs, run('ship', 1)] },
    'ship ran 2 times in the epoch',
  ],
  ['lost a body run', { ...undisturbed, runs: undisturbed.runs.slice(1) }, 'reserve ran 0 times in the epoch'],
  ['ran a recorded step', { ...recovered, runs: [...recovered.runs, run('reserve', 2)] }, 'reserve ran again'],
  ['changed its record', { ...recovered, recordedBefore: [step('reserve', 1, 'other')] }, 'result of reserve changed'],
  ['changed who recorded', { ...recovered, recordedBefore: [step('charge', 1)] }, 'result of charge changed'],
  [
    'changed its key',
    { ...recovered, runs: [run('reserve', 1), run('charge', 1, 'k'), run('charge', 2, 'l'), run('ship', 2)] },
    'different idempotency keys',
  ],
  ['was not interrupted', { ...undisturbed, role: 'zombie' }, 'charge ran 1 times, not 2'],
  ['was taken over again', { ...recovered, epoch: 3 }, 'ended in epoch 3'],
])('an order that %s is found', (_, facts, violation) => {
  expect(violationsOf(facts).join('\n')).toContain(violation);
});
