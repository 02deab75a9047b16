import { DatabaseError } from '../../errors/database-errors.js';
import type { Refused } from '../store.js';

const CHECK_VIOLATION = '23514';
/** Longest IDs of workflows, messages and streams, in bytes. */
const LONGEST_ID_BYTES = 512;
/** Longest topics and event keys, in bytes. */
const LONGEST_NAME_BYTES = 255;

/** As PostgreSQL refuses a row. */
export function refusal(constraint: string): Refused {
  return {
    kind: 'refused',
    error: new DatabaseError(`A row violates the constraint "${constraint}".`, {
      sqlState: CHECK_VIOLATION,
      constraint,
    }),
  };
}

export function isWorkflowId(text: string): boolean {
  return hasLength(text, LONGEST_ID_BYTES);
}

export function isMessageId(text: string): boolean {
  return hasLength(text, LONGEST_ID_BYTES);
}

/** Of an event of the outbox. */
export function isLaneKey(text: string | null): boolean {
  return text === null || hasLength(text, LONGEST_ID_BYTES);
}

export function isStreamKey(text: string): boolean {
  return hasLength(text, LONGEST_ID_BYTES);
}

/** Of a topic or of an event's key. */
export function isName(text: string): boolean {
  return hasLength(text, LONGEST_NAME_BYTES);
}

/** Exactly one of the two is text. */
export function isOutputOrError(output: string | null, error: string | null): boolean {
  return (output === null) !== (error === null);
}

function hasLength(text: string, most: number): boolean {
  const bytes = Buffer.byteLength(text);
  return bytes >= 1 && bytes <= most;
}
