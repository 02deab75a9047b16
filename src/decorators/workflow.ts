import type { StartOptions, WorkflowOptions } from '../api/workflow-options.js';
import {
  attachDefinition,
  workflowDefinition,
  type AnyFunction,
  type WorkflowDefinition,
} from '../engine/definitions.js';
import { callChild } from '../engine/durable-calls.js';
import type { Engine } from '../engine/engine.js';
import type { ExecutionHost } from '../engine/execution-host.js';
import { durableExecution } from '../engine/scope.js';
import { NotLaunchedError } from '../errors/usage-errors.js';
import { checkIsCalled, methodDecorator, type AsyncMethodDecorator } from './method-decorator.js';
import { quietly } from '../engine/quietly.js';

/**
 * Makes a method a workflow: its progress is recorded, and it reaches an outcome even if its process does not.
 *
 * Called directly, it is started in the Holdfast that was launched with it, and the call returns its outcome; inside another
 * workflow, it is started as a child. Code between steps must be deterministic: whatever differs between two runs (time,
 * random numbers, input and output) belongs into steps, or into `now`, `random` and `uuid`.
 *
 * @throws InvalidArgumentError, RegistrationError when the class is evaluated, for options that are not of the documented form.
 */
export function Workflow<Input = never>(options: WorkflowOptions<Input> = {}): AsyncMethodDecorator<Input> {
  checkIsCalled(options, 'Workflow');
  return methodDecorator('Workflow', options.name, (name, body) =>
    wrapWorkflow(workflowDefinition(name, body, options)),
  );
}

/**
 * The function form of `@Workflow`. Give the returned function to `launch`, and call or start that one.
 *
 * @param name Name in the record; it must stay the same over releases.
 * @param options What the schemas make of a value has to be of the types that the body takes and returns.
 * @example
 * const placeOrder = defineWorkflow('placeOrder', async (order: Order) => { … }, { input: Order });
 */
export function defineWorkflow<Arguments extends unknown[], Result>(
  name: string,
  body: (...args: Arguments) => Promise<Result>,
  options: Omit<WorkflowOptions<NoInfer<Arguments>[0], NoInfer<Result>>, 'name'> = {},
): (...args: Arguments) => Promise<Result> {
  const definition = workflowDefinition(name, body as AnyFunction, options);
  return wrapWorkflow(definition) as (...args: Arguments) => Promise<Result>;
}

function wrapWorkflow(definition: WorkflowDefinition): AnyFunction {
  const wrapper = function (this: unknown, ...args: unknown[]): unknown {
    return callWorkflow(definition, this, args);
  };
  attachDefinition(wrapper, definition);
  return wrapper;
}

function callWorkflow(definition: WorkflowDefinition, self: unknown, args: unknown[]): Promise<unknown> {
  return quietly(async () => {
    const parent = durableExecution();
    if (parent !== undefined) {
      return callChild(parent, definition, args, optionsFor(parent.host, definition, self));
    }
    const engine = onlyEngineOf(definition);
    const handle = await engine.start(definition, optionsFor(engine, definition, self), args);
    return handle.result();
  });
}

/** A method is run on the object that it is called on, if that one is registered. */
function optionsFor(host: ExecutionHost, definition: WorkflowDefinition, self: unknown): StartOptions {
  const instance = host.instanceNameOf(definition, self);
  return instance === undefined ? {} : { instance };
}

function onlyEngineOf(definition: WorkflowDefinition): Engine {
  const engines = [...definition.engines] as Engine[];
  const [engine] = engines;
  if (engine === undefined) {
    throw new NotLaunchedError(
      `Workflow "${definition.name}" was called, but no Holdfast is launched with it. Launch one: Holdfast.launch({ workflows: […] }).`,
    );
  }
  if (engines.length > 1) {
    throw new NotLaunchedError(
      `Workflow "${definition.name}" was called, and ${String(engines.length)} Holdfasts are launched with it. Say which: holdfast.start(…).`,
    );
  }
  return engine;
}
