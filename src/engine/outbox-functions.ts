import type { OutboxAddOptions } from '../api/outbox.js';
import { OutsideWorkflowError } from '../errors/usage-errors.js';
import { addEvent } from './durable-outbox.js';
import { currentScope } from './scope.js';

/** The outbox of the running workflow. */
export const outbox = {
  /**
   * Adds an event for the outside world: it is on record exactly if this call is, and is delivered at least once, by an executor
   * that was launched with a handler for its topic.
   *
   * In the workflow it is a durable call. In the body of a step, the event is added together with the step's result, by the attempt
   * that brings it: an attempt that fails adds nothing. In the body of a `@Transaction` it commits with that.
   *
   * @param topic 1 to 255 bytes.
   * @throws InvalidArgumentError, OutsideWorkflowError, ValueNotSerializableError, PayloadTooLargeError (more than 1 MiB)
   * @example
   * await outbox.add('order.placed', { orderId, cents }, { key: orderId });
   */
  add(topic: string, payload: unknown, options: OutboxAddOptions = {}): Promise<void> {
    const scope = currentScope();
    if (scope === undefined) {
      return Promise.reject(
        new OutsideWorkflowError(
          'outbox.add works inside a workflow and in its steps only. Elsewhere, call holdfast.outbox.add.',
        ),
      );
    }
    return addEvent(scope, topic, payload, options);
  },
};
