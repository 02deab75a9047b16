import { AsyncLocalStorage } from 'node:async_hooks';
import { OutsideWorkflowError } from '../errors/usage-errors.js';
import type { EventBuffer } from './event-buffer.js';
import type { RunningExecution } from './execution-host.js';
import type { TransactionSettings } from './transaction-definition.js';
import type { RunningAttempt } from './running-attempt.js';

/** Where the running code is: in a workflow, and perhaps inside one of its steps. */
export interface Scope {
  readonly execution: RunningExecution;
  readonly step: RunningAttempt | undefined;
  /** The transaction in which the step's body runs. */
  readonly transaction?: RunningTransaction;
  /** What runs here that may only look at the workflow: a query, say. */
  readonly readOnly?: string;
}

const STORAGE = Symbol.for('holdfast.scope.v1');

/**
 * One storage for all copies of this version in the process (hot reload evaluates modules again), since a step that asks
 * another storage than its workflow entered would believe to be outside of it and run unrecorded.
 */
function sharedStorage(): AsyncLocalStorage<Scope | undefined> {
  const holder = globalThis as { [STORAGE]?: AsyncLocalStorage<Scope | undefined> | undefined };
  return (holder[STORAGE] ??= new AsyncLocalStorage<Scope | undefined>());
}

const storage = sharedStorage();

/** The open transaction of a step, and what it was begun with. */
export interface RunningTransaction {
  readonly client: unknown;
  readonly settings: TransactionSettings;
  /** What this run of the body adds to the outbox: another one begins anew. */
  readonly events: EventBuffer;
}

export function runInScope<Result>(scope: Scope, body: () => Result): Result {
  return storage.run(scope, body);
}

/**
 * Leaves whatever workflow the caller is in: for work that the process does for itself. Not by `exit`, which switches the tracking
 * of all promises off and on again: about 2 µs.
 */
export function runOutsideScope<Result>(body: () => Result): Result {
  return storage.run(undefined, body);
}

export function currentScope(): Scope | undefined {
  return storage.getStore();
}

/** The execution to which a durable operation called here belongs; undefined outside workflows and inside step bodies. */
export function durableExecution(): RunningExecution | undefined {
  const scope = storage.getStore();
  return scope?.step === undefined && scope?.readOnly === undefined ? scope?.execution : undefined;
}

/** @throws OutsideWorkflowError */
export function requireDurable(operation: string): RunningExecution {
  const scope = storage.getStore();
  if (scope === undefined) {
    throw new OutsideWorkflowError(`${operation} works inside a workflow only. Call it from a @Workflow function.`);
  }
  if (scope.readOnly !== undefined) {
    throw new OutsideWorkflowError(`${operation} was called inside ${scope.readOnly}, which may only look.`);
  }
  if (scope.step !== undefined) {
    throw new OutsideWorkflowError(
      `${operation} was called inside step "${scope.step.name}". Call it from the workflow: a step is one durable unit.`,
    );
  }
  return scope.execution;
}
