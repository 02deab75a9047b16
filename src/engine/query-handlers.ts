import { QueryNotHandledError } from '../errors/message-errors.js';
import type { RunningExecution } from './execution-host.js';
import { runInScope } from './scope.js';

/** How long code that has come to rest may take to say how it answers, in milliseconds. */
const REGISTRATION_MS = 250;

type Answer = (...args: unknown[]) => unknown;

interface Handlers {
  readonly byName: Map<string, Answer>;
  readonly onAdded: Set<(name: string) => void>;
}

/** How the executions of this process answer questions about their state. */
export class QueryHandlers {
  readonly #handlers = new WeakMap<RunningExecution, Handlers>();

  add(execution: RunningExecution, name: string, answer: Answer): void {
    const { byName, onAdded } = this.#of(execution);
    byName.set(name, answer);
    for (const callback of onAdded) callback(name);
  }

  /**
   * Answers by what the code says once it has replayed its record. Never settles when the execution ends before that.
   * @throws QueryNotHandledError, or what the handler throws.
   */
  async answer(execution: RunningExecution, name: string, args: readonly unknown[]): Promise<unknown> {
    await execution.whenReplayed();
    const answer = this.#of(execution).byName.get(name) ?? (await this.#added(execution, name));
    if (answer === undefined) {
      throw new QueryNotHandledError(
        `Workflow "${execution.workflowId}" has not said how it answers query "${name}". Call its handle() at the beginning of the workflow.`,
      );
    }
    return runInScope({ execution, step: undefined, readOnly: `query "${name}"` }, () => answer(...args));
  }

  #added(execution: RunningExecution, name: string): Promise<Answer | undefined> {
    const { byName, onAdded } = this.#of(execution);
    return new Promise((resolve) => {
      const end = (): void => {
        cancel();
        onAdded.delete(look);
        resolve(byName.get(name));
      };
      const look = (added: string): void => {
        if (added === name) end();
      };
      const cancel = execution.runtime.startTimer(REGISTRATION_MS, end);
      onAdded.add(look);
    });
  }

  #of(execution: RunningExecution): Handlers {
    let handlers = this.#handlers.get(execution);
    if (handlers === undefined) {
      handlers = { byName: new Map(), onAdded: new Set() };
      this.#handlers.set(execution, handlers);
    }
    return handlers;
  }
}
