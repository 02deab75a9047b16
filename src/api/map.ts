/** What `mapWorkflows` takes. */
export interface MapOptions {
  /** Children that are under way at the same time, 1 to 1,000. */
  readonly concurrency: number;
  /** The queue whose limits the children keep to besides. Default: none; they start at once, in this process. */
  readonly queue?: string;
  /** Whose the children are in the queue; see `key` of `enqueue`. */
  readonly key?: string;
  /** Once so many have succeeded, the map is done, and the others are cancelled. Default: all run to their ends. */
  readonly minSuccessful?: number;
  /** Once more than this have failed, the map fails, and the others are cancelled. Default: any number may fail. */
  readonly toleratedFailures?: number;
}

/** What came of one input. */
export type MapResult<Result> =
  { readonly ok: true; readonly value: Result } | { readonly ok: false; readonly error: unknown };
