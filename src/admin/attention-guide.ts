import type { BlockCode } from '../engine/attention-codes.js';

/** What there is to say to a person about one kind of entry of the attention list. */
export interface AttentionGuide {
  /** What happened. */
  readonly meaning: string;
  /** What a person can do, with the operations that apply. */
  readonly whatToDo: string;
}

/**
 * All codes of the attention list. A new reason to call a person needs an entry here, which compiler and tests see to, and a row in
 * docs/attention.md, which a test compares with it.
 */
export const ATTENTION_GUIDES = {
  NONDETERMINISM: {
    meaning: 'The code took another path than the recorded one.',
    whatToDo:
      'Deploy code that takes the recorded path, then admin.resume. Or admin.rewind or admin.fork before the changed call.',
  },
  DEAD_LETTER: {
    meaning: 'The workflow was claimed as often as it may be, and never ended.',
    whatToDo: 'Find out why its processes die (admin.ownership), then admin.resume, which gives fresh attempts.',
  },
  STUCK: {
    meaning: 'The executions of the workflow make no progress; where its status is ERROR, it was ended for that.',
    whatToDo:
      'Find what writes to its row, or what its step waits for. Let it go on, or admin.rewind or admin.fork it.',
  },
  OUTCOME_UNKNOWN: {
    meaning:
      'Nobody knows what became of a step: its process died, or its reply did not come, and nobody could find out.',
    whatToDo:
      'Look at the other system, under the idempotency key of the step, and say what happened with admin.repairStep; then admin.resume. A resume alone asks reconcile again.',
  },
  COMPENSATION_FAILED: {
    meaning: 'A compensation failed for good. Those after it have not run.',
    whatToDo:
      'Mend its cause, then admin.resume, which tries it again; or undo the step by hand, record that with admin.skipCompensation, and resume.',
  },
  WRITE_REFUSED: {
    meaning: 'The database refuses what the workflow has to record, and the error about that, too.',
    whatToDo: 'Read the server’s error in the log; mend the database or the value, then admin.resume.',
  },
  PAYLOAD_CODEC_FAILED: {
    meaning: 'The payload codec failed on what was to be recorded.',
    whatToDo: 'Mend the codec or its key, then admin.resume: what could not be recorded is done again.',
  },
  INPUT_UNREADABLE: {
    meaning: 'The stored input cannot be decoded.',
    whatToDo: 'Give the executors the payload codec, or the release, that it was written with, then admin.resume.',
  },
  REGISTRATION_INVALID: {
    meaning: 'What the code of a step names is not there, such as the method of its reconcile.',
    whatToDo: 'Deploy code that has it, then admin.resume.',
  },
  DATA_SOURCE_INVALID: {
    meaning: 'A transaction failed, and its data source could not be asked whether an earlier run of it has committed.',
    whatToDo: 'Read the error in the log; mend the data source, then admin.resume: the transaction is tried again.',
  },
  ENGINE_FAILURE: {
    meaning: 'An unexpected error stopped the execution.',
    whatToDo: 'Read the log, and report it if it is ours; then admin.resume.',
  },
  UNDELIVERABLE: {
    meaning: 'An event of the outbox was not delivered: every attempt failed, or its handler refused it for good.',
    whatToDo:
      'Read its last error (admin.outbox.list with payload), mend the cause, then admin.outbox.redeliver; or give it up with admin.outbox.discard. Events of the same topic and key wait behind it.',
  },
} as const satisfies Readonly<Record<BlockCode | 'DEAD_LETTER' | 'STUCK' | 'UNDELIVERABLE', AttentionGuide>>;

/** The codes that this release has words for. */
export type AttentionCode = keyof typeof ATTENTION_GUIDES;

const OTHER: AttentionGuide = {
  meaning: 'An execution found something that it could not mend.',
  whatToDo: 'The detail says what it was. Mend that, then admin.resume.',
};

/** For a code of another release there are general words. */
export function attentionGuide(code: string): AttentionGuide {
  return Object.hasOwn(ATTENTION_GUIDES, code) ? ATTENTION_GUIDES[code as AttentionCode] : OTHER;
}
