import type { ExecutionEnd } from './execution-host.js';

/** What an engine has counted since launch. Plain numbers, so that counting costs nothing. */
export interface EngineCounters {
  /** Workflows that began here: started directly, or as children. */
  started: number;
  /** Results of durable calls that were recorded. */
  checkpoints: number;
  /** Outcomes that executions recorded. */
  readonly outcomes: { success: number; error: number };
  /** Executions by the way they ended. */
  readonly ends: Record<ExecutionEnd['kind'], number>;
}

export function newEngineCounters(): EngineCounters {
  return {
    started: 0,
    checkpoints: 0,
    outcomes: { success: 0, error: 0 },
    ends: {
      completed: 0,
      parked: 0,
      blocked: 0,
      'given-back': 0,
      suspended: 0,
      continued: 0,
      requeued: 0,
      'rolling-back': 0,
    },
  };
}
