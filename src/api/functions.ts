/** An asynchronous function or method: what can be a workflow or a step. */
export type AsyncFunction<Arguments extends readonly unknown[] = never, Result = unknown> = (
  ...args: Arguments
) => Promise<Result>;
