import { isDeepStrictEqual } from 'node:util';
import type { Order } from './checkout.js';
import type { BodyRun } from './outside-world.js';
import type { RecordedStep } from './records.js';
import type { Role } from './roles.js';
import { printable } from './text.js';

/** The steps with a body, in the order in which a checkout takes them. */
export const BODIES = ['reserve', 'charge', 'ship'] as const;
/** All steps of a checkout, in their order. */
export const PATH: readonly string[] = ['reserve', 'charge', 'sleep', 'ship'];

/** Everything that is known of an order at the end: by the database's account, and by the outside world's. */
export interface OrderFacts {
  readonly order: Order;
  readonly role: Role;
  readonly status: string;
  readonly epoch: number;
  readonly recorded: readonly RecordedStep[];
  /** What was on record when it was interrupted; undefined: it never was. */
  readonly recordedBefore: readonly RecordedStep[] | undefined;
  readonly runs: readonly BodyRun[];
}

/** How often the outside world saw the body of a step. */
export function runsOfStep(facts: OrderFacts, step: string): number {
  return facts.runs.filter((run) => run.step === step).length;
}

/** Holds an order against what Holdfast promises. Returns what is not as it should be. */
export function violationsOf(facts: OrderFacts): readonly string[] {
  const found = [
    ...endViolations(facts),
    ...recordViolations(facts),
    ...runViolations(facts),
    ...roleViolations(facts),
  ];
  return found.map((violation) => `order ${printable(facts.order.id)}: ${violation}`);
}

function endViolations({ status }: OrderFacts): readonly string[] {
  return status === 'SUCCESS' ? [] : [`ended as ${status}, not as SUCCESS`];
}

/** Each step has one result, and no result changed once it was on record. */
function recordViolations({ recorded, recordedBefore }: OrderFacts): readonly string[] {
  const violations: string[] = [];
  const names = recorded.map(({ name }) => name);
  if (!isDeepStrictEqual(names, PATH)) {
    violations.push(`has the steps ${names.join(', ')} on record instead of ${PATH.join(', ')}`);
  }
  for (const before of recordedBefore ?? []) {
    const after = recorded.find(({ seq }) => seq === before.seq);
    if (!isDeepStrictEqual(after, before)) violations.push(`the recorded result of ${before.name} changed`);
  }
  return violations;
}

/** A result comes from one run of the body; other runs are earlier ones, which an interruption kept from being recorded. */
function runViolations(facts: OrderFacts): readonly string[] {
  const violations: string[] = [];
  for (const step of BODIES) {
    const recorded = facts.recorded.find(({ name }) => name === step);
    const runs = facts.runs.filter((run) => run.step === step);
    if (recorded === undefined) continue;
    const byOwner = runs.filter(({ epoch }) => epoch === recorded.epoch).length;
    if (byOwner !== 1) violations.push(`${step} ran ${String(byOwner)} times in the epoch that recorded it, not once`);
    if (runs.some(({ epoch }) => epoch > recorded.epoch)) violations.push(`${step} ran again after it was recorded`);
    if (new Set(runs.map(({ idempotencyKey }) => idempotencyKey)).size > 1) {
      violations.push(`the runs of ${step} had different idempotency keys`);
    }
  }
  return violations;
}

/** What was staged is what happened. */
function roleViolations(facts: OrderFacts): readonly string[] {
  const violations: string[] = [];
  const { role, epoch } = facts;
  if (role !== 'undisturbed' && epoch !== 2) violations.push(`ended in epoch ${String(epoch)}, not in epoch 2`);
  if (role === 'undisturbed') return violations;
  for (const step of BODIES) {
    const expected = step === 'charge' && role !== 'cancelled' ? 2 : 1;
    const runs = runsOfStep(facts, step);
    if (runs !== expected) violations.push(`${step} ran ${String(runs)} times, not ${String(expected)}`);
  }
  return violations;
}
