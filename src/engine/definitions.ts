import type { ReconcileOption } from '../api/reconciliation.js';
import type { CompensateOption } from '../api/compensation.js';
import type { StepOptions } from '../api/step-options.js';
import type { StandardSchema } from '../api/standard-schema.js';
import type { WorkflowOptions } from '../api/workflow-options.js';
import { InvalidArgumentError } from '../errors/admin-errors.js';
import { RegistrationError } from '../errors/usage-errors.js';
import type { AnyFunction } from './any-function.js';
import { compensationPolicy, type CompensationPolicy } from './compensation-policy.js';
import { parseDuration } from './duration.js';
import { checkIsFunction, checkKnownOptions } from './known-options.js';
import { checkAtMostOnce, reconcilePolicy, type ReconcilePolicy } from './reconcile-policy.js';
import { retryPolicy, type RetryPolicy } from './retry-policy.js';
import { checkIsSchema } from './schema.js';
import { wholeNumber } from './whole-number.js';

export type { AnyFunction };

/** For calls without options, which need no check. */
export const NO_OPTIONS = Object.freeze({});
export const DEFAULT_MAX_ATTEMPTS = 100;
const LONGEST_NAME_BYTES = 255;

/** A workflow function with its options made explicit. */
export interface WorkflowDefinition {
  readonly kind: 'workflow';
  readonly name: string;
  readonly body: AnyFunction;
  readonly input: StandardSchema | undefined;
  readonly output: StandardSchema | undefined;
  readonly maxAttempts: number;
  readonly timeoutMs: number | null;
  readonly stuckAfterMs: number | null;
  readonly onStuck: 'report' | 'fail';
  /** Engines that can run it, so that a direct call finds the one to use. */
  readonly engines: Set<unknown>;
}

export interface StepDefinition {
  /** A transaction is a step, too: transaction-definition.ts has the rest of it. */
  readonly kind: 'step' | 'transaction';
  readonly name: string;
  readonly body: AnyFunction;
  readonly retries: RetryPolicy;
  readonly timeoutMs: number | null;
  /** The intent is recorded before the body begins. */
  readonly needsIntent: boolean;
  readonly reconcile: ReconcilePolicy | undefined;
  readonly atMostOnce: boolean;
  readonly compensate: CompensationPolicy | undefined;
}

const WORKFLOW_OPTIONS: ReadonlySet<string> = new Set<keyof WorkflowOptions>([
  'name',
  'input',
  'output',
  'maxAttempts',
  'timeout',
  'stuckAfter',
  'onStuck',
]);
const STEP_OPTIONS: ReadonlySet<string> = new Set<keyof StepOptions>([
  'name',
  'retries',
  'timeout',
  'reconcile',
  'reconcileRetries',
  'reconcileTimeout',
  'atMostOnce',
  'compensate',
]);

/** @throws RegistrationError, InvalidArgumentError */
export function workflowDefinition(
  name: string,
  body: AnyFunction,
  options: Omit<WorkflowOptions, 'name'>,
): WorkflowDefinition {
  checkKnownOptions(options, WORKFLOW_OPTIONS, 'A workflow');
  return {
    kind: 'workflow',
    name: checkName(name, 'workflow'),
    body: checkBody(body, 'workflow'),
    input: checkIsSchema(options.input, 'input'),
    output: checkIsSchema(options.output, 'output'),
    maxAttempts: wholeNumber(options.maxAttempts ?? DEFAULT_MAX_ATTEMPTS, 1, 2 ** 31 - 1, 'maxAttempts'),
    timeoutMs: options.timeout === undefined ? null : parseDuration(options.timeout, 'timeout'),
    stuckAfterMs: options.stuckAfter === undefined ? null : parseDuration(options.stuckAfter, 'stuckAfter'),
    onStuck: checkOnStuck(options),
    engines: new Set(),
  };
}

/** @throws RegistrationError, InvalidArgumentError */
export function stepDefinition(
  name: string,
  body: AnyFunction,
  options: Omit<StepOptions<ReconcileOption | undefined, CompensateOption | undefined>, 'name'>,
): StepDefinition {
  if (options !== NO_OPTIONS) checkKnownOptions(options, STEP_OPTIONS, 'A step');
  const retries = retryPolicy(options.retries);
  const reconcile = reconcilePolicy(options);
  const compensate = compensationPolicy(options.compensate);
  const atMostOnce = checkAtMostOnce(options.atMostOnce ?? false, retries);
  return {
    kind: 'step',
    name: checkName(name, 'step'),
    body: checkBody(body, 'step'),
    retries,
    timeoutMs: options.timeout === undefined ? null : parseDuration(options.timeout, 'timeout'),
    needsIntent: reconcile !== undefined || atMostOnce || compensate !== undefined,
    reconcile,
    atMostOnce,
    compensate,
  };
}

function checkOnStuck({ onStuck, stuckAfter }: Omit<WorkflowOptions, 'name'>): 'report' | 'fail' {
  const wanted: unknown = onStuck ?? 'report';
  if (wanted !== 'report' && wanted !== 'fail') {
    throw new InvalidArgumentError('The option "onStuck" is "report" or "fail".');
  }
  if (wanted === 'report' || stuckAfter !== undefined) return wanted;
  throw new InvalidArgumentError('"onStuck" says what comes after "stuckAfter", which is not given.');
}

function checkBody(body: AnyFunction, what: string): AnyFunction {
  checkIsFunction(body, `The body of a ${what}, which comes after its name,`);
  return body;
}

function checkName(name: string, what: string): string {
  const usable = typeof name === 'string' && name !== '' && Buffer.byteLength(name) <= LONGEST_NAME_BYTES;
  if (!usable || /\0|\p{Surrogate}/u.test(name)) {
    throw new RegistrationError(
      `A ${what} needs a name of 1 to ${String(LONGEST_NAME_BYTES)} bytes. Give one with the option "name".`,
    );
  }
  return name;
}

/** Under the same symbol in every copy of the library, so that one copy recognises what another has decorated. */
const DEFINITION = Symbol.for('holdfast.definition.v1');

/** Makes `wrapper` known as the callable form of `definition`. */
export function attachDefinition(wrapper: object, definition: WorkflowDefinition | StepDefinition): void {
  Object.defineProperty(wrapper, DEFINITION, { value: definition });
}

export function definitionOf(candidate: unknown): WorkflowDefinition | StepDefinition | undefined {
  if (typeof candidate !== 'function') return undefined;
  return (candidate as { [DEFINITION]?: WorkflowDefinition | StepDefinition })[DEFINITION];
}

export function workflowDefinitionOf(candidate: unknown): WorkflowDefinition | undefined {
  const definition = definitionOf(candidate);
  return definition?.kind === 'workflow' ? definition : undefined;
}
