import type { Logger } from '../api/logger.js';
import { HistoryLimitError } from '../errors/workflow-errors.js';

/** Durable calls of one workflow after which a warning is logged, once. */
export const HISTORY_WARNING = 10_000;
/** Durable calls that one workflow can make. A replay reads them all. */
export const HISTORY_LIMIT = 20_000;

/** @throws HistoryLimitError for a call beyond the limit. */
export function enterHistory(seq: number, workflowId: string, logger: Logger): void {
  if (seq < HISTORY_WARNING) return;
  if (seq === HISTORY_WARNING) logger.warn('A workflow has made very many durable calls.', { workflowId, calls: seq });
  if (seq >= HISTORY_LIMIT) {
    throw new HistoryLimitError(
      `A workflow can make ${String(HISTORY_LIMIT)} durable calls. Split the work over child workflows.`,
    );
  }
}
