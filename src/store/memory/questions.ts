import type { AskAnswer, EncodedAnswer, Question, QuestionId, QueryAnswer } from '../query-store.js';
import type { ExecutorIdentity } from '../store.js';
import { isOwnedBy } from './executors.js';
import type { MemoryDatabase } from './memory-database.js';
import { isTerminal, type QuestionRow } from './tables.js';
import { wakeUp } from './wake-ups.js';

/** Asks about a workflow's state; clears away questions for whose answers nobody waits any more. See ask_query. */
export function ask(db: MemoryDatabase, { workflowId, requestId, name, args }: Question, timeoutMs: number): AskAnswer {
  const now = db.now();
  for (const { questions } of db.workflows.values()) {
    for (const [id, { expiresAt }] of questions) if (expiresAt < now) questions.delete(id);
  }
  const workflow = db.workflows.get(workflowId);
  if (workflow === undefined) return { kind: 'missing' };
  if (isTerminal(workflow.status)) return { kind: 'ended', status: workflow.status };
  if (!workflow.questions.has(requestId)) {
    const question = { name, args, askedAt: now, expiresAt: now + timeoutMs, reply: null, error: null };
    workflow.questions.set(requestId, question);
  }
  wakeUp(db, workflowId);
  return { kind: 'asked' };
}

/** What became of a question; undefined: it is open. See read_query_answers. */
export function readAnswer(db: MemoryDatabase, { workflowId, requestId }: QuestionId): QueryAnswer | undefined {
  const workflow = db.workflows.get(workflowId);
  if (workflow === undefined) return { kind: 'missing' };
  const question = workflow.questions.get(requestId);
  if (question !== undefined && isAnswered(question)) {
    return { kind: 'answered', reply: question.reply, error: question.error };
  }
  return isTerminal(workflow.status) ? { kind: 'ended', status: workflow.status } : undefined;
}

/** Questions about what this executor owns, the oldest first; see open_queries. */
export function openQuestions(db: MemoryDatabase, executor: ExecutorIdentity, limit: number): Question[] {
  const found = [...db.workflows.values()]
    .filter((workflow) => isOwnedBy(workflow, executor))
    .flatMap(({ workflowId, questions }) =>
      [...questions].map(([requestId, question]) => ({ workflowId, requestId, question })),
    )
    .filter(({ question }) => !isAnswered(question) && question.expiresAt > db.now())
    .sort((one, other) => one.question.askedAt - other.question.askedAt);
  return found.slice(0, limit).map(({ workflowId, requestId, question: { name, args } }) => ({
    workflowId,
    requestId,
    name,
    args,
  }));
}

/** The first answer stays; see answer_query. */
export function answerQuestion(
  db: MemoryDatabase,
  { workflowId, requestId }: QuestionId,
  { reply, error }: EncodedAnswer,
): void {
  const question = db.workflows.get(workflowId)?.questions.get(requestId);
  if (question === undefined || isAnswered(question)) return;
  question.reply = reply;
  question.error = error;
}

function isAnswered({ reply, error }: QuestionRow): boolean {
  return reply !== null || error !== null;
}
