import type { Compensate } from '../api/compensation.js';
import type { Reconciliation } from '../api/reconciliation.js';

/** `unknown` when the functions that a step's options give go with its method; else a sentence, to which nothing is assignable. */
type Fits<Reconcile, Undo, Arguments extends readonly unknown[], Result> = Answers<Reconcile, Arguments, Result> &
  Undoes<Undo extends Compensate<infer Run> ? Run : Undo, Arguments, Result>;

type Undoes<Run, Arguments extends readonly unknown[], Result> = [Run] extends [string | undefined]
  ? unknown
  : [Run] extends [(result: Result, ...args: Arguments) => Promise<unknown>]
    ? unknown
    : '"compensate" has to take the result of its step, and then the arguments of its step, and to be asynchronous.';

type Answers<Reconcile, Arguments extends readonly unknown[], Result> = [Reconcile] extends [string | undefined]
  ? unknown
  : [Reconcile] extends [(...args: Arguments) => Promise<Reconciliation<Result>>]
    ? unknown
    : '"reconcile" has to take the arguments of its step, and to answer with a Reconciliation of its result.';

/** A decorator for asynchronous methods, in both forms. `Reconcile`, `Undo`: the types of the options `reconcile` and `compensate`. */
export interface StepDecorator<Reconcile, Undo> {
  /** The standard form. */
  <This, Arguments extends unknown[], Result>(
    method: ((this: This, ...args: Arguments) => Promise<Result>) & Fits<Reconcile, Undo, Arguments, Result>,
    context: ClassMethodDecoratorContext<This, (this: This, ...args: Arguments) => Promise<Result>>,
  ): (this: This, ...args: Arguments) => Promise<Result>;
  /** The form of `experimentalDecorators`. */
  <Method extends (...args: never[]) => Promise<unknown>>(
    target: object,
    key: string | symbol,
    descriptor: TypedPropertyDescriptor<Method> &
      Fits<Reconcile, Undo, Parameters<Method>, Awaited<ReturnType<Method>>>,
  ): void;
}
