import type { ExecutorIdentity } from './store.js';

/** Questions about the state of workflows that run in another process. */
export interface QueryStore {
  /** Asks, and tells whoever runs the workflow. */
  ask(question: Question, timeoutMs: number): Promise<AskAnswer>;
  /** What became of these questions, in their order; undefined while they are open. */
  readAnswers(questions: readonly QuestionId[]): Promise<readonly (QueryAnswer | undefined)[]>;
  /** Questions that this executor has to answer. */
  open(executor: ExecutorIdentity): Promise<readonly Question[]>;
  /** Answers, and tells whoever waits. */
  answer(question: QuestionId, answer: EncodedAnswer): Promise<void>;
  /** Nobody waits for the answer any more. */
  forget(question: QuestionId): Promise<void>;
  close(): void;
}

export interface QuestionId {
  readonly workflowId: string;
  readonly requestId: string;
}

export interface Question extends QuestionId {
  readonly name: string;
  /** Encoded. */
  readonly args: string;
}

/** Exactly one of the two is text. */
export interface EncodedAnswer {
  readonly reply: string | null;
  readonly error: string | null;
}

export type AskAnswer = { readonly kind: 'asked' } | Unanswerable;

export type QueryAnswer = ({ readonly kind: 'answered' } & EncodedAnswer) | Unanswerable;

export type Unanswerable = { readonly kind: 'missing' } | { readonly kind: 'ended'; readonly status: string };
