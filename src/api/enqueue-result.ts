import type { WorkflowHandle } from './workflow-handle.js';

/** One of several: its handle, or the error that enqueuing it alone would have thrown. */
export type EnqueueResult<Result> =
  { readonly ok: true; readonly handle: WorkflowHandle<Result> } | { readonly ok: false; readonly error: Error };
