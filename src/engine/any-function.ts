/** A function as the engine calls it, whatever its own types. */
export type AnyFunction = (this: unknown, ...args: unknown[]) => unknown;
