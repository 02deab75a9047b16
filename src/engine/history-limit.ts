import type { Logger } from '../api/logger.js';
import { HistoryLimitError } from '../errors/workflow-errors.js';

/** Durable calls of one run of a workflow after which a warning is logged, once. */
export const HISTORY_WARNING = 10_000;
/** Durable calls that one run of a workflow can make. A replay reads them all. */
export const HISTORY_LIMIT = 20_000;

/**
 * @param call Its place in the run, from 0.
 * @throws HistoryLimitError for a call beyond the limit.
 */
export function enterHistory(call: number, workflowId: string, logger: Logger): void {
  if (call < HISTORY_WARNING) return;
  if (call === HISTORY_WARNING) {
    logger.warn('A workflow has made very many durable calls: let it continue as new.', { workflowId, calls: call });
  }
  if (call >= HISTORY_LIMIT) {
    throw new HistoryLimitError(
      `One run of a workflow can make ${String(HISTORY_LIMIT)} durable calls. Go on with continueAsNew, or split the work over child workflows.`,
    );
  }
}
