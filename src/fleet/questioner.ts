import { encodeAnswer } from '../engine/encoded-answer.js';
import type { RunningExecution } from '../engine/execution-host.js';
import { notFound } from '../engine/not-found.js';
import type { QueryHandlers } from '../engine/query-handlers.js';
import { sendRefusalError } from '../engine/send-refusal.js';
import type { Serializer } from '../engine/serializer.js';
import { Watcher } from '../engine/watcher.js';
import { QueryTimeoutError } from '../errors/message-errors.js';
import type { Runtime } from '../runtime/runtime.js';
import type { EncodedAnswer, QueryAnswer, QueryStore, QuestionId, Unanswerable } from '../store/query-store.js';
import type { WorkflowStore } from '../store/store.js';

/** What is asked. */
export interface AskedQuery {
  readonly workflowId: string;
  readonly name: string;
  readonly timeoutMs: number;
}

export interface QuestionerParts {
  readonly runtime: Runtime;
  readonly store: QueryStore;
  readonly workflows: Pick<WorkflowStore, 'verifyOwnership'>;
  readonly serializer: Serializer;
  readonly pollMs: number;
  /** What runs in this process can be asked directly; undefined where nothing does. */
  readonly engine: (() => RunningHere) | undefined;
}

/** What an engine tells of the executions in this process. */
export interface RunningHere {
  readonly queries: QueryHandlers;
  runningExecution(workflowId: string): RunningExecution | undefined;
}

/** Asks running workflows about their state: directly where they run here, else through the database. */
export class Questioner {
  readonly #parts: QuestionerParts;
  readonly #answers: Watcher<QuestionId, QueryAnswer>;

  constructor(parts: QuestionerParts) {
    this.#parts = parts;
    this.#answers = new Watcher((questions) => parts.store.readAnswers(questions), parts.pollMs, parts.runtime);
  }

  /** There may be answers of these workflows; null: of any. */
  check(workflowIds: readonly string[] | null): void {
    this.#answers.check(workflowIds);
  }

  async ask(query: AskedQuery, args: readonly unknown[]): Promise<unknown> {
    const { runtime, serializer } = this.#parts;
    // A copy, as it would travel: nobody outside holds what the workflow gets.
    const text = await serializer.encode(args);
    const endAt = runtime.now() + query.timeoutMs;
    const answer = (await this.#askHere(query, text, endAt)) ?? (await this.#askElsewhere(query, text, endAt));
    if (answer.error !== null) throw await serializer.decode(answer.error);
    return answer.reply === null ? undefined : serializer.decode(answer.reply);
  }

  close(): void {
    this.#answers.close();
  }

  /** Undefined when it does not run here, or ends before it has answered. */
  async #askHere(query: AskedQuery, text: string, endAt: number): Promise<EncodedAnswer | undefined> {
    const { runtime, serializer } = this.#parts;
    const engine = this.#parts.engine?.();
    const execution = engine?.runningExecution(query.workflowId);
    if (engine === undefined || execution === undefined) return undefined;
    let forget = (): void => undefined;
    const gone = new Promise<undefined>((resolve) => {
      forget = execution.onGone(() => {
        resolve(undefined);
      });
    });
    const answered = async (): Promise<EncodedAnswer | undefined> => {
      // One that was replaced or cancelled and has not heard of it must not answer.
      if (!(await this.#parts.workflows.verifyOwnership(execution.ownership))) return undefined;
      const args = (await serializer.decode(text)) as readonly unknown[];
      return encodeAnswer(engine.queries, serializer, execution, query.name, args);
    };
    try {
      return await inTime(runtime, query, endAt, Promise.race([answered(), gone]));
    } catch (error) {
      if (!execution.isRunning) return undefined;
      throw error;
    } finally {
      forget();
    }
  }

  async #askElsewhere(query: AskedQuery, args: string, endAt: number): Promise<EncodedAnswer> {
    const { runtime, store } = this.#parts;
    const { workflowId, name } = query;
    const question = { workflowId, requestId: runtime.randomUuid() };
    const watch = this.#answers.watch(question);
    try {
      const leftMs = Math.ceil(Math.max(1, endAt - runtime.now()));
      const asked = await inTime(runtime, query, endAt, store.ask({ ...question, name, args }, leftMs));
      if (asked.kind !== 'asked') throw unanswerable(workflowId, asked);
      const answer = await inTime(runtime, query, endAt, watch.next());
      if (answer.kind !== 'answered') throw unanswerable(workflowId, answer);
      return answer;
    } finally {
      watch.stop();
      // What is not forgotten expires.
      store.forget(question).catch(() => undefined);
    }
  }
}

function unanswerable(workflowId: string, found: Unanswerable): Error {
  return found.kind === 'missing'
    ? notFound(workflowId)
    : sendRefusalError(workflowId, { kind: 'receiver-ended', status: found.status });
}

/** @throws QueryTimeoutError */
async function inTime<Result>(
  runtime: Runtime,
  { workflowId, name, timeoutMs }: AskedQuery,
  endAt: number,
  work: Promise<Result>,
): Promise<Result> {
  let cancel = (): void => undefined;
  const timeUp = new Promise<never>((_, reject) => {
    cancel = runtime.startTimer(endAt - runtime.now(), () => {
      reject(
        new QueryTimeoutError(
          `Workflow "${workflowId}" has not answered query "${name}" within ${String(timeoutMs)} ms. Is an executor running that knows it?`,
        ),
      );
    });
  });
  try {
    return await Promise.race([work, timeUp]);
  } finally {
    cancel();
  }
}
