import type { Reconciliation } from '../api/reconciliation.js';

/** `unknown` when the functions that a step's options give go with its method; else a sentence, to which nothing is assignable. */
type Fits<Reconcile, Arguments extends readonly unknown[], Result> = [Reconcile] extends [string | undefined]
  ? unknown
  : [Reconcile] extends [(...args: Arguments) => Promise<Reconciliation<Result>>]
    ? unknown
    : '"reconcile" has to take the arguments of its step, and to answer with a Reconciliation of its result.';

/** A decorator for asynchronous methods, in both forms. `Reconcile`: the type of the option of that name. */
export interface StepDecorator<Reconcile> {
  /** The standard form. */
  <This, Arguments extends unknown[], Result>(
    method: ((this: This, ...args: Arguments) => Promise<Result>) & Fits<Reconcile, Arguments, Result>,
    context: ClassMethodDecoratorContext<This, (this: This, ...args: Arguments) => Promise<Result>>,
  ): (this: This, ...args: Arguments) => Promise<Result>;
  /** The form of `experimentalDecorators`. */
  <Method extends (...args: never[]) => Promise<unknown>>(
    target: object,
    key: string | symbol,
    descriptor: TypedPropertyDescriptor<Method> & Fits<Reconcile, Parameters<Method>, Awaited<ReturnType<Method>>>,
  ): void;
}
