import {
  InvalidReconciliationError,
  NonRetryableError,
  OutcomeUnknownError,
  StepDidNotHappenError,
  StepTimeoutError,
} from '../errors/step-errors.js';
import { RegistrationError } from '../errors/usage-errors.js';
import type { EventToAdd } from '../store/event-to-add.js';
import { AttemptContext, idempotencyKey } from './attempt-context.js';
import type { StepDefinition } from './definitions.js';
import type { RunningExecution } from './execution-host.js';
import type { OpenCall } from './open-calls.js';
import { runInScope } from './scope.js';
import { retryDelayMs, wait, type Finding } from './step-attempts.js';
import { stepMethod } from './step-method.js';
import { asError, whatWasThrown } from './thrown.js';

/** A step whose outcome is to be found out, as the workflow has called it. */
export interface UnknownStep {
  readonly execution: RunningExecution;
  readonly open: OpenCall;
  readonly definition: StepDefinition;
  readonly seq: number;
  readonly self: unknown;
  readonly args: readonly unknown[];
}

/** Whether an attempt that ended with this error may have had its effect all the same. A timeout is not a failure. */
export function leavesUnknown({ reconcile, atMostOnce }: StepDefinition, error: unknown): boolean {
  if (error instanceof OutcomeUnknownError) return true;
  return error instanceof StepTimeoutError && (reconcile !== undefined || atMostOnce);
}

/**
 * Asks what became of a step's body: after a crash, a timeout, or an OutcomeUnknownError. Asked until the answer is one, or
 * the questions are used up; then, and where there is nobody to ask, the workflow is blocked until a person has found out.
 *
 * @param cause What the run of the body ended with; undefined where its process did not live to say.
 * @param attempts How many runs have ended like this.
 * @throws OutcomeUnknownError, InvalidReconciliationError, OwnershipLostError: the execution is over.
 */
export async function findOut(step: UnknownStep, cause: unknown, attempts: number): Promise<Finding> {
  const { reconcile } = step.definition;
  if (reconcile === undefined) return block(step, attempts, 'it has no "reconcile" to ask', cause);
  let last: unknown;
  for (let question = 1; ; question++) {
    const answer = await ask(step, question);
    step.execution.assertRunning();
    switch (answer.kind) {
      case 'happened':
        return answer;
      case 'did-not-happen':
        return { kind: 'did-not-happen', error: didNotHappen(step.definition, cause) };
      case 'invalid':
        return block(step, attempts, 'the answer of "reconcile" is none', answer.error);
      case 'failed':
        last = answer.error;
        break;
      case 'unknown':
        last = undefined;
    }
    const isFinal = last instanceof NonRetryableError || last instanceof RegistrationError;
    if (question >= reconcile.retries.maxAttempts || isFinal) {
      const how = last === undefined ? 'does not know' : 'fails';
      return block(step, attempts, `"reconcile" ${how}, after ${String(question)} questions`, last ?? cause);
    }
    await wait(retryDelayMs(reconcile.retries, last, question, step.execution.runtime), step.execution);
    step.execution.assertRunning();
  }
}

type Answer =
  | Extract<Finding, { readonly kind: 'happened' }>
  | { readonly kind: 'did-not-happen' }
  | { readonly kind: 'unknown' }
  | { readonly kind: 'failed'; readonly error: unknown }
  | { readonly kind: 'invalid'; readonly error: InvalidReconciliationError };

async function ask({ execution, definition, seq, self, args }: UnknownStep, question: number): Promise<Answer> {
  const { reconcile, name } = definition;
  if (reconcile === undefined) return { kind: 'unknown' };
  const permission = execution.mayRunBody();
  if (permission !== undefined) await permission;
  const context = new AttemptContext(name, seq, question, execution);
  let answer: unknown;
  let events: readonly EventToAdd[];
  try {
    const asked = runInScope({ execution, step: context }, () =>
      stepMethod(reconcile.source, self, name, 'reconcile').apply(self, [...args]),
    );
    answer = await context.within(asked, reconcile.timeoutMs, 'A "reconcile"');
    events = await context.takeEvents();
  } catch (thrown) {
    return { kind: 'failed', error: whatWasThrown(thrown) };
  } finally {
    context.end();
  }
  return answerOf(answer, events, name);
}

function answerOf(answer: unknown, events: readonly EventToAdd[], name: string): Answer {
  let cause: unknown;
  try {
    const said = saidBy(answer, events);
    if (said !== undefined) return said;
  } catch (thrown) {
    // Something in it throws when it is looked at.
    cause = thrown;
  }
  const error = new InvalidReconciliationError(
    `The "reconcile" of step "${name}" has to answer { happened: true, result }, { didNotHappen: true } or { stillUnknown: true }.`,
    cause === undefined ? {} : { cause },
  );
  return { kind: 'invalid', error };
}

function saidBy(answer: unknown, events: readonly EventToAdd[]): Answer | undefined {
  if (typeof answer !== 'object' || answer === null) return undefined;
  const { happened, didNotHappen, stillUnknown } = answer as Readonly<Record<string, unknown>>;
  const said = [happened, didNotHappen, stillUnknown].filter((part) => part !== undefined);
  if (said.length !== 1 || said[0] !== true) return undefined;
  if (didNotHappen === true) return { kind: 'did-not-happen' };
  if (stillUnknown === true) return { kind: 'unknown' };
  // A result that was forgotten would be recorded as undefined for ever.
  return 'result' in answer ? { kind: 'happened', value: answer.result, events } : undefined;
}

function didNotHappen({ name }: StepDefinition, cause: unknown): StepDidNotHappenError {
  const message = `The outcome of a run of step "${name}" was unknown; by its "reconcile", it did not happen.`;
  return new StepDidNotHappenError(message, cause === undefined ? {} : { cause });
}

/** Stops the workflow until a person has found out. That nobody knew is recorded first: to resume it is no answer. */
async function block(step: UnknownStep, attempts: number, because: string, cause: unknown): Promise<never> {
  const { execution, open, definition, seq } = step;
  const { name } = definition;
  const key = idempotencyKey(execution.workflowId, seq, name);
  const detail =
    `The outcome of step "${name}" (number ${String(seq)}, idempotency key ${key}) is unknown: ${because}. ` +
    'Find out what happened and record it with admin.repairStep' +
    (definition.reconcile === undefined ? '.' : ', or resume the workflow to ask "reconcile" again.');
  const error =
    cause instanceof InvalidReconciliationError
      ? cause
      : new OutcomeUnknownError(detail, cause === undefined ? {} : { cause: asError(cause) });
  open.intended = seq;
  const { store } = execution.host;
  const answer = await execution.write(store.markUnknown(execution.ownership, { seq, name, attempts }));
  if (answer.kind !== 'written' && answer.kind !== 'refused') return execution.denied(answer);
  execution.block('OUTCOME_UNKNOWN', detail, error);
  throw error;
}
