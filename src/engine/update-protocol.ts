import type { UpdateOptions } from '../api/signals.js';
import { UpdateRejectedError } from '../errors/message-errors.js';
import { UPDATE_PREFIX } from '../store/update-prefix.js';
import { uuidOf } from './attempt-context.js';
import { checkText } from './check-text.js';
import { parseDuration } from './duration.js';
import { checkKnownOptions } from './known-options.js';
import { LONGEST_DEFINED_NAME_BYTES } from './message-arguments.js';
import type { Serializer } from './serializer.js';

// An update is a message on a topic of Holdfast's own, and its answer an event under a key of Holdfast's own. So both are
// recorded, and whoever asks again with the same ID finds the answer.

const UPDATE_OPTIONS: ReadonlySet<string> = new Set<keyof UpdateOptions>(['updateId', 'timeout', 'signal']);

/** What is sent. */
export interface UpdateRequest {
  /** See {@link requestIdOf}. */
  readonly updateId: string;
  readonly input: unknown;
}

/** What came of it. Errors are encoded, so that one of which not everything can be stored is stored all the same. */
export type UpdateReply =
  | { readonly outcome: 'done'; readonly result: unknown }
  | { readonly outcome: 'failed' | 'rejected'; readonly error: string };

export function updateTopic(name: string): string {
  return UPDATE_PREFIX + name;
}

/**
 * What a request goes by: made of the update's name and the ID that the caller gave, so that an ID which is used for two updates does
 * not have one of them taken for the other.
 */
export function requestIdOf(name: string, updateId: string): string {
  return uuidOf([name, updateId]);
}

/** The key of the event with the reply, and the idempotency key of the request. */
export function updateKey(updateId: string): string {
  return UPDATE_PREFIX + updateId;
}

/** @throws InvalidArgumentError */
export function checkUpdate(options: UpdateOptions): number | null {
  checkKnownOptions(options, UPDATE_OPTIONS, 'update');
  if (options.updateId !== undefined) checkText(options.updateId, LONGEST_DEFINED_NAME_BYTES, 'updateId');
  return options.timeout === undefined ? null : parseDuration(options.timeout, 'timeout');
}

/** Returns what the handler returned, or throws what it threw. */
export async function resultOfUpdate(name: string, reply: UpdateReply, serializer: Serializer): Promise<unknown> {
  switch (reply.outcome) {
    case 'done':
      return reply.result;
    case 'failed':
      throw await serializer.decode(reply.error);
    case 'rejected':
      throw new UpdateRejectedError(`The workflow refuses this update "${name}": see the cause.`, {
        cause: await serializer.decode(reply.error),
      });
  }
}
