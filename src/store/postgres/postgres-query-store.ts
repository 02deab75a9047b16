import type { Driver, SqlParameter, SqlRow } from '../../drivers/driver.js';
import type { AskAnswer, EncodedAnswer, QueryAnswer, QueryStore, Question, QuestionId } from '../query-store.js';
import type { ExecutorIdentity } from '../store.js';
import { askAgain } from './ask-again.js';
import { IdAnnouncer } from './id-announcer.js';

/** How long questions are collected before other processes are told, in milliseconds. */
const COLLECT_MS = 2;
/** Questions that an executor takes at a time. */
const MAX_OPEN = 100;

interface AskRow extends SqlRow {
  readonly answer: 'missing' | 'ended' | null;
  readonly found_status: string | null;
}

interface AnswerRow extends SqlRow {
  readonly item: number;
  readonly answer: 'answered' | 'missing' | 'ended';
  readonly reply: string | null;
  readonly error: string | null;
  readonly found_status: string | null;
}

export interface PostgresQueryStoreOptions {
  readonly driver: Driver;
  /** Validated by the caller, quoted here. */
  readonly schema: string;
  /** Tells other processes that there is news of a workflow for whoever waits. */
  readonly announce: (workflowId: string) => void;
}

/** The query store on PostgreSQL: calls the functions of sql/functions by name, and nothing else. */
export class PostgresQueryStore implements QueryStore {
  readonly #driver: Driver;
  readonly #schema: string;
  readonly #announce: (workflowId: string) => void;
  readonly #announcer: IdAnnouncer;
  readonly #closing = new AbortController();

  constructor({ driver, schema, announce }: PostgresQueryStoreOptions) {
    this.#driver = driver;
    this.#schema = schema;
    this.#announce = announce;
    this.#announcer = new IdAnnouncer(driver, `${schema}.query`, COLLECT_MS);
  }

  async ask({ workflowId, requestId, name, args }: Question, timeoutMs: number): Promise<AskAnswer> {
    const [row] = await this.#run<AskRow>(
      'holdfast_ask_query',
      `SELECT answer, found_status FROM ${this.#call('ask_query')}($1::text, $2::uuid, $3::text, $4::text, $5::int8)`,
      [workflowId, requestId, name, args, timeoutMs],
    );
    if (row === undefined) throw new TypeError('ask_query returned no row.');
    if (row.answer === 'missing') return { kind: 'missing' };
    if (row.answer === 'ended') return { kind: 'ended', status: row.found_status ?? '' };
    this.#announcer.announce(workflowId);
    return { kind: 'asked' };
  }

  async readAnswers(questions: readonly QuestionId[]): Promise<readonly (QueryAnswer | undefined)[]> {
    const rows = await this.#run<AnswerRow>(
      'holdfast_read_query_answers',
      `SELECT item, answer, reply, error, found_status FROM ${this.#call('read_query_answers')}($1::text[], $2::uuid[])`,
      [questions.map(({ workflowId }) => workflowId), questions.map(({ requestId }) => requestId)],
    );
    const found = new Map(rows.map((row) => [row.item, toAnswer(row)]));
    return questions.map((_, index) => found.get(index + 1));
  }

  async open({ executorId, incarnation }: ExecutorIdentity): Promise<readonly Question[]> {
    const rows = await this.#run<{ workflow_id: string; request_id: string; name: string; arguments: string }>(
      'holdfast_open_queries',
      `SELECT workflow_id, request_id::text AS request_id, name, arguments
         FROM ${this.#call('open_queries')}($1::text, $2::int8, $3::int4)`,
      [executorId, incarnation, MAX_OPEN],
    );
    return rows.map((row) => ({
      workflowId: row.workflow_id,
      requestId: row.request_id,
      name: row.name,
      args: row.arguments,
    }));
  }

  async answer({ workflowId, requestId }: QuestionId, { reply, error }: EncodedAnswer): Promise<void> {
    await this.#run(
      'holdfast_answer_query',
      `SELECT ${this.#call('answer_query')}($1::text, $2::uuid, $3::text, $4::text)`,
      [workflowId, requestId, reply, error],
    );
    this.#announce(workflowId);
  }

  async forget({ workflowId, requestId }: QuestionId): Promise<void> {
    await this.#run('holdfast_forget_query', `SELECT ${this.#call('forget_query')}($1::text, $2::uuid)`, [
      workflowId,
      requestId,
    ]);
  }

  close(): void {
    this.#closing.abort();
    this.#announcer.close();
  }

  /** All of it may safely happen twice. */
  #run<Row extends SqlRow>(
    prepare: string,
    text: string,
    parameters: readonly SqlParameter[],
  ): Promise<readonly Row[]> {
    return askAgain<Row>(this.#driver, this.#closing.signal, text, parameters, { prepare, forMs: Infinity });
  }

  #call(functionName: string): string {
    return `"${this.#schema}".${functionName}`;
  }
}

function toAnswer({ answer, reply, error, found_status: status }: AnswerRow): QueryAnswer {
  switch (answer) {
    case 'answered':
      return { kind: 'answered', reply, error };
    case 'missing':
      return { kind: 'missing' };
    case 'ended':
      return { kind: 'ended', status: status ?? '' };
  }
}
