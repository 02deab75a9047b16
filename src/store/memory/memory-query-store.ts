import { randomUUID } from 'node:crypto';
import type { AskAnswer, EncodedAnswer, QueryAnswer, QueryStore, Question, QuestionId } from '../query-store.js';
import type { ExecutorIdentity } from '../store.js';
import { DIRECT_LINK } from './link.js';
import { MemoryCalls } from './memory-calls.js';
import type { MemoryDatabase } from './memory-database.js';
import type { MemoryStoreOptions } from './memory-store.js';
import { answerQuestion, ask, openQuestions, readAnswer } from './questions.js';

/** Questions that an executor takes up at once. */
const MOST_OPEN = 100;

/** The query store in memory. */
export class MemoryQueryStore implements QueryStore {
  readonly #db: MemoryDatabase;
  readonly #calls: MemoryCalls;

  constructor({ database, link = DIRECT_LINK, clock = database.clock, newNonce = randomUUID }: MemoryStoreOptions) {
    this.#db = database;
    this.#calls = new MemoryCalls({ link, clock, newNonce });
  }

  async ask(question: Question, timeoutMs: number): Promise<AskAnswer> {
    const answer = await this.#calls.ask(() => ask(this.#db, question, timeoutMs));
    if (answer.kind === 'asked') this.#db.notify({ topic: 'query', workflowIds: [question.workflowId] });
    return answer;
  }

  readAnswers(questions: readonly QuestionId[]): Promise<readonly (QueryAnswer | undefined)[]> {
    return this.#calls.ask(() => questions.map((question) => readAnswer(this.#db, question)));
  }

  open(executor: ExecutorIdentity): Promise<readonly Question[]> {
    return this.#calls.ask(() => openQuestions(this.#db, executor, MOST_OPEN));
  }

  async answer(question: QuestionId, answer: EncodedAnswer): Promise<void> {
    await this.#calls.ask(() => {
      answerQuestion(this.#db, question, answer);
    });
    this.#db.notify({ topic: 'message', workflowIds: [question.workflowId] });
  }

  async forget({ workflowId, requestId }: QuestionId): Promise<void> {
    await this.#calls.ask(() => this.#db.workflows.get(workflowId)?.questions.delete(requestId));
  }

  close(): void {
    void this.#calls.close(0);
  }
}
