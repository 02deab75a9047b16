import type { RefusalRow } from './refusal-row.js';

/**
 * A write of an execution that is a function of its own: it travels with others of the same function, each with its own
 * check. The function's first four parameters are workflow_id, token, version and nonce; it answers as classify_refusal
 * does, or with what `answerOf` knows, and may add a text (reply).
 */
export interface ProtocolCall<Answer> {
  readonly functionName: string;
  /** Of the parameters after the first four. */
  readonly types: readonly ('int4' | 'text')[];
  readonly values: readonly (string | number | null)[];
  /** The number under which it is recorded in the workflow; undefined: it records nothing there. */
  readonly seq: number | undefined;
  /** What a row says to the caller; undefined: why the write was refused, as classify_refusal says. */
  readonly answerOf: (row: RefusalRow) => Answer | undefined;
}
