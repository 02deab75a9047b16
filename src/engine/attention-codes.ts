/**
 * Why an execution stops a workflow until a person decides. Each has its words in src/admin/attention-guide.ts, which the compiler
 * sees to; the store adds DEAD_LETTER, STUCK and UNDELIVERABLE.
 */
export type BlockCode =
  | 'NONDETERMINISM'
  | 'OUTCOME_UNKNOWN'
  | 'COMPENSATION_FAILED'
  | 'WRITE_REFUSED'
  | 'PAYLOAD_CODEC_FAILED'
  | 'INPUT_UNREADABLE'
  | 'REGISTRATION_INVALID'
  | 'DATA_SOURCE_INVALID'
  | 'ENGINE_FAILURE';
