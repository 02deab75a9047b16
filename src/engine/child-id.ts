import { createHash } from 'node:crypto';
import type { Ownership } from '../store/store.js';
import { uuidOf } from './attempt-context.js';
import { LONGEST_ID_BYTES } from './workflow-id.js';

/** Of the hash, as hexadecimal digits: 48 bits, for all the executions of one ID. */
const MARK_DIGITS = 12;

/**
 * The ID of a child whose code gives none: of the call, and of the execution that makes it. So neither a parent that was rewound, nor a
 * workflow that has the ID of a deleted one, attaches to what the same call has started before. The token cannot be guessed by it. Where a long family leaves no room for the parent's
 * ID, a hash stands for it: children may have children to any depth.
 */
export function childIdOf({ workflowId, token }: Pick<Ownership, 'workflowId' | 'token'>, seq: number): string {
  const mark = createHash('sha256').update(token).digest('hex').slice(0, MARK_DIGITS);
  const call = `.${String(seq)}.${mark}`;
  const hasRoom = Buffer.byteLength(workflowId) + call.length <= LONGEST_ID_BYTES;
  return (hasRoom ? workflowId : uuidOf([workflowId])) + call;
}
