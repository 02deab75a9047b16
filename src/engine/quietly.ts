import { durableExecution } from './scope.js';

/**
 * Does what a durable call does, for a public function. Inside a workflow a rejection that nobody awaits never reaches the
 * process: when the execution ends, every open call is rejected, also one that the code has forgotten, and that must not end
 * the process with all that runs in it. A promise that is made of such a call rejects by itself, so each layer needs it.
 */
export function quietly<Result>(work: () => Promise<Result>): Promise<Result> {
  const promise = work();
  if (durableExecution() !== undefined) promise.catch(() => undefined);
  return promise;
}
