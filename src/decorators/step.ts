import type { Compensate, CompensateFunction, CompensateOption } from '../api/compensation.js';
import type { ReconcileFunction, ReconcileOption } from '../api/reconciliation.js';
import type { StepOptions } from '../api/step-options.js';
import {
  attachDefinition,
  NO_OPTIONS,
  stepDefinition,
  type AnyFunction,
  type StepDefinition,
} from '../engine/definitions.js';
import { InvalidArgumentError } from '../errors/admin-errors.js';
import { durableExecution } from '../engine/scope.js';
import { checkIsCalled, methodDecorator } from './method-decorator.js';
import { methodCheck, namesMethods } from './method-options.js';
import type { StepDecorator } from './step-decorator.js';

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
export function Step<
  Reconcile extends ReconcileOption | undefined = undefined,
  Undo extends CompensateOption | undefined = undefined,
>(options: StepOptions<Reconcile, Undo> = {}): StepDecorator<Reconcile, Undo> {
  checkIsCalled(options, 'Step');
  return methodDecorator(
    'Step',
    options.name,
    (name, body) => {
      const definition = stepDefinition(name, body, options);
      const wrapper = function (this: unknown, ...args: unknown[]): unknown {
        return callStep(definition, this, args);
      };
      attachDefinition(wrapper, definition);
      return wrapper;
    },
    methodCheck(options),
  );
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
  options: Omit<
    StepOptions<ReconcileFunction<[], NoInfer<Result>>, UndoFunction<NoInfer<Result>>>,
    'name'
  > = NO_OPTIONS,
): Promise<Result> {
  if (namesMethods(options)) {
    throw new InvalidArgumentError(
      'runStep takes "reconcile" and "compensate" as functions: it knows no class to look for a method in.',
    );
  }
  return callStep(stepDefinition(name, body, options), undefined, []) as Promise<Result>;
}

type UndoFunction<Result> = CompensateFunction<[], Result> | Compensate<CompensateFunction<[], Result>>;

function callStep(definition: StepDefinition, self: unknown, args: unknown[]): unknown {
  const execution = durableExecution();
  return execution === undefined
    ? (definition.body satisfies AnyFunction).apply(self, args)
    : execution.runStep(definition, self, args);
}
