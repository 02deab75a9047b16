import type { HoldfastError } from '../errors/holdfast-error.js';
import { ReceiverEndedError } from '../errors/message-errors.js';
import type { SendRefusal } from '../store/store.js';
import { notFound } from './not-found.js';

/** Why a message was not sent, as the sender is told. */
export function sendRefusalError(receiver: string, refusal: SendRefusal): HoldfastError {
  switch (refusal.kind) {
    case 'no-receiver':
      return notFound(receiver);
    case 'receiver-ended':
      return new ReceiverEndedError(
        `Workflow "${receiver}" has ended (${refusal.status}): nobody would receive the message.`,
        { status: refusal.status },
      );
  }
}
