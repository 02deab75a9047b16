import type { StoreHints } from '../store.js';

/** What one process tells all. */
export type Hint =
  | { readonly topic: 'control'; readonly workflowId: string }
  | { readonly topic: 'outcome' | 'message' | 'query' | 'stream'; readonly workflowIds: readonly string[] }
  | { readonly topic: 'outbox' }
  | { readonly topic: 'work' }
  | { readonly topic: 'schedules' };

/** Passes hints on to all who listen. */
export class HintBoard {
  readonly #listeners = new Set<(hint: Hint) => void>();

  notify(hint: Hint): void {
    for (const listener of this.#listeners) listener(hint);
  }

  listen(listener: (hint: Hint) => void): () => void {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  }
}

/** Passes a hint on to whom it concerns in a process. */
export function passHint(hints: StoreHints, hint: Hint): void {
  switch (hint.topic) {
    case 'control':
      hints.onControl(hint.workflowId);
      hints.onStreams([hint.workflowId]);
      break;
    case 'outcome':
      hints.onOutcomes(hint.workflowIds);
      hints.onStreams(hint.workflowIds);
      break;
    case 'message':
      hints.onMessages(hint.workflowIds);
      break;
    case 'query':
      hints.onQueries(hint.workflowIds);
      break;
    case 'stream':
      hints.onStreams(hint.workflowIds);
      break;
    case 'outbox':
      hints.onOutbox();
      break;
    case 'work':
      hints.onWork();
      break;
    case 'schedules':
      hints.onSchedules();
  }
}
