import { EventNotSetError } from '../errors/message-errors.js';
import type { EventAddress, FoundEvent } from '../store/store.js';
import { notFound } from './not-found.js';

/**
 * The encoded value of an event.
 * @throws EventNotSetError, WorkflowNotFoundError
 */
export function valueOfEvent({ workflowId, key }: EventAddress, found: FoundEvent): string {
  switch (found.kind) {
    case 'set':
      return found.value;
    case 'ended':
      throw new EventNotSetError(
        `Workflow "${workflowId}" has ended (${found.status}) without setting event "${key}".`,
        {
          status: found.status,
        },
      );
    case 'missing':
      throw notFound(workflowId);
  }
}
