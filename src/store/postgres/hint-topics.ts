import type { StoreHints } from '../store.js';

/** What `<schema>.work` carries when schedules were edited; anything else: there may be something to claim. */
const SCHEDULES_CHANGED = 'schedules';

/** The channels of hints are `<schema>.<topic>`. */
export const HINT_TOPICS = ['control', 'outcome', 'message', 'query', 'stream', 'outbox', 'work'] as const;

/** Passes a notification on to whom it concerns. */
export function passHint(hints: StoreHints, topic: string, payload: string): void {
  switch (topic) {
    case 'control':
      hints.onControl(payload);
      hints.onStreams([payload]);
      break;
    case 'outcome': {
      const workflowIds = parseWorkflowIds(payload);
      hints.onOutcomes(workflowIds);
      hints.onStreams(workflowIds);
      break;
    }
    case 'message':
      hints.onMessages(parseWorkflowIds(payload));
      break;
    case 'query':
      hints.onQueries(parseWorkflowIds(payload));
      break;
    case 'stream':
      hints.onStreams(parseWorkflowIds(payload));
      break;
    case 'outbox':
      hints.onOutbox();
      break;
    default:
      if (payload === SCHEDULES_CHANGED) hints.onSchedules();
      else hints.onWork();
  }
}

/** A payload is a JSON array of IDs; anything else means "look at all". */
function parseWorkflowIds(payload: string): string[] | null {
  try {
    const parsed: unknown = JSON.parse(payload);
    return Array.isArray(parsed) ? parsed.filter((id): id is string => typeof id === 'string') : null;
  } catch {
    return null;
  }
}
