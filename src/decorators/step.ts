import type { StepOptions } from '../api/step-options.js';
import {
  attachDefinition,
  NO_OPTIONS,
  stepDefinition,
  type AnyFunction,
  type StepDefinition,
} from '../engine/definitions.js';
import { durableExecution } from '../engine/scope.js';
import { methodDecorator, type AsyncMethodDecorator } from './method-decorator.js';

/**
 * Makes a method a step: called from a workflow, its result is checkpointed, and once recorded its body is never run again.
 * The body itself runs at least once. Called elsewhere, also from inside another step, it is a plain call.
 *
 * @example
 * class Shop {
 *   @Step({ retries: { maxAttempts: 5 }, timeout: '10s' })
 *   static async reserve(orderId: string): Promise<string> { … }
 * }
 *
 * @throws InvalidArgumentError, RegistrationError when the class is evaluated, for options that are not of the documented form.
 */
export function Step(options: StepOptions = {}): AsyncMethodDecorator {
  return methodDecorator('Step', options.name, (name, body) => {
    const definition = stepDefinition(name, body, options);
    const wrapper = function (this: unknown, ...args: unknown[]): unknown {
      return callStep(definition, this, args);
    };
    attachDefinition(wrapper, definition);
    return wrapper;
  });
}

/**
 * Runs a function as a step of the workflow that calls this.
 *
 * @param name Name of the step in the record; the same at every run.
 * @example
 * const receipt = await runStep('charge', () => payments.charge(order), { retries: { maxAttempts: 3 } });
 */
export function runStep<Result>(
  name: string,
  body: () => Promise<Result>,
  options: Omit<StepOptions, 'name'> = NO_OPTIONS,
): Promise<Result> {
  return callStep(stepDefinition(name, body, options), undefined, []) as Promise<Result>;
}

function callStep(definition: StepDefinition, self: unknown, args: unknown[]): unknown {
  const execution = durableExecution();
  return execution === undefined
    ? (definition.body satisfies AnyFunction).apply(self, args)
    : execution.runStep(definition, self, args);
}
