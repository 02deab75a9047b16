import { InvalidArgumentError } from '../errors/admin-errors.js';

export const LONGEST_ID_BYTES = 512;

/** @throws InvalidArgumentError unless it can be stored, compared and sent exactly as it is. */
export function checkWorkflowId(workflowId: unknown): string {
  if (typeof workflowId !== 'string' || workflowId === '' || Buffer.byteLength(workflowId) > LONGEST_ID_BYTES) {
    throw new InvalidArgumentError(`A workflow ID is a text of 1 to ${String(LONGEST_ID_BYTES)} bytes.`);
  }
  if (/\0|\p{Surrogate}/u.test(workflowId)) {
    throw new InvalidArgumentError('A workflow ID must not contain NUL or half of a surrogate pair.');
  }
  return workflowId;
}
