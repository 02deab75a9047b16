import { RegistrationError } from '../errors/usage-errors.js';
import type { CompensationPolicy } from './compensation-policy.js';
import { definitionOf, type AnyFunction } from './definitions.js';
import { ONE_ATTEMPT, policyOf, type RetryPolicy } from './retry-policy.js';
import type { StepAttempts } from './step-attempts.js';
import { stepMethod } from './step-method.js';

/** A compensation is worth some patience: what it does not undo a person has to. */
const DEFAULT_RETRIES: RetryPolicy = policyOf({ maxAttempts: 10 }, 'retries');

/** What is run to undo something, with everything decided. */
export interface CompensationBody extends StepAttempts {
  readonly body: AnyFunction;
}

/**
 * @param name The name of what it undoes, which is its own in the record.
 * @param self What a method is looked for on.
 * @throws RegistrationError when there is no such method, or it is none that can undo a step.
 */
export function compensationBody(
  policy: CompensationPolicy | undefined,
  name: string,
  self: unknown,
): CompensationBody {
  if (policy === undefined)
    throw new RegistrationError(`Step "${name}" has to be undone, and has no "compensate" any more.`);
  const { source, retries, timeoutMs } = policy;
  const method = stepMethod(source, self, name, 'compensate');
  const definition = definitionOf(method);
  switch (definition?.kind) {
    case undefined:
      return { name, body: method, retries: retries ?? DEFAULT_RETRIES, timeoutMs: timeoutMs ?? null };
    case 'step': {
      if (definition.atMostOnce) {
        throw new RegistrationError(
          `The "compensate" of step "${name}" is a step that is "atMostOnce": a compensation is run until it succeeds.`,
        );
      }
      const own = definition.retries === ONE_ATTEMPT ? DEFAULT_RETRIES : definition.retries;
      return {
        name,
        body: definition.body,
        retries: retries ?? own,
        timeoutMs: timeoutMs ?? definition.timeoutMs,
      };
    }
    default:
      throw new RegistrationError(
        `The "compensate" of step "${name}" is a ${String(definition?.kind)}: give a step, a plain method or a function.`,
      );
  }
}
