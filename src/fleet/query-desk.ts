import type { Logger } from '../api/logger.js';
import { encodeAnswer } from '../engine/encoded-answer.js';
import type { Engine } from '../engine/engine.js';
import type { Serializer } from '../engine/serializer.js';
import { codeOf } from '../errors/error-code.js';
import type { Runtime } from '../runtime/runtime.js';
import type { QueryStore, Question } from '../store/query-store.js';
import type { ExecutorIdentity } from '../store/store.js';
import { Repeater } from './repeater.js';

export interface QueryDeskOptions {
  readonly runtime: Runtime;
  readonly store: QueryStore;
  readonly engine: Engine;
  readonly serializer: Serializer;
  readonly logger: Logger;
  readonly identity: () => ExecutorIdentity;
  readonly pollMs: number;
}

/** Answers questions of other processes about workflows that run here. Looks for them when told, and once a poll. */
export class QueryDesk {
  readonly #options: QueryDeskOptions;
  readonly #repeater: Repeater;
  /** Questions that are being answered. */
  readonly #underWay = new Set<string>();

  constructor(options: QueryDeskOptions) {
    this.#options = options;
    this.#repeater = new Repeater(
      options.runtime,
      () => this.#look(),
      () => options.pollMs,
    );
  }

  start(): void {
    this.#repeater.start();
  }

  /** These workflows may have been asked; null: any. */
  wake(workflowIds: readonly string[] | null): void {
    const { engine } = this.#options;
    if (workflowIds === null || workflowIds.some((id) => engine.runningExecution(id) !== undefined)) {
      this.#repeater.wake();
    }
  }

  stop(): Promise<void> {
    return this.#repeater.stop();
  }

  async #look(): Promise<void> {
    const { store, engine, logger, identity } = this.#options;
    if (engine.runningCount === 0) return;
    try {
      for (const question of await store.open(identity())) {
        if (!this.#underWay.has(question.requestId)) void this.#answer(question);
      }
    } catch (error) {
      logger.warn('Queries could not be looked for.', { code: codeOf(error) });
    }
  }

  /** What stays without an answer is found again at the next look, by whoever runs the workflow then. */
  async #answer(question: Question): Promise<void> {
    const { store, engine, serializer, logger } = this.#options;
    const execution = engine.runningExecution(question.workflowId);
    if (execution === undefined) return;
    this.#underWay.add(question.requestId);
    const over = (): void => {
      this.#underWay.delete(question.requestId);
      forget();
    };
    const forget = execution.onGone(() => {
      this.#underWay.delete(question.requestId);
    });
    try {
      const args = (await serializer.decode(question.args)) as readonly unknown[];
      await store.answer(question, await encodeAnswer(engine.queries, serializer, execution, question.name, args));
    } catch (error) {
      logger.warn('A query could not be answered.', { workflowId: question.workflowId, code: codeOf(error) });
    } finally {
      over();
    }
  }
}
