import { checkStepMethod } from '../engine/step-method.js';

/** The options of steps and transactions that may name a method of the class. */
interface MethodOptions {
  readonly reconcile?: unknown;
  readonly compensate?: unknown;
}

/** What the option `compensate` runs. */
function undoOf(option: unknown): unknown {
  return typeof option === 'object' && option !== null && 'run' in option ? option.run : option;
}

/** Whether one of them names a method. */
export function namesMethods({ reconcile, compensate }: MethodOptions): boolean {
  return typeof reconcile === 'string' || typeof undoOf(compensate) === 'string';
}

/** Checks, once the class is there, that it has the methods that they name; undefined: they name none. */
export function methodCheck(options: MethodOptions): ((name: string, holder: unknown) => void) | undefined {
  if (!namesMethods(options)) return undefined;
  const { reconcile } = options;
  const compensate = undoOf(options.compensate);
  return (name, holder) => {
    checkStepMethod(reconcile, holder, name, 'reconcile');
    checkStepMethod(compensate, holder, name, 'compensate');
  };
}
