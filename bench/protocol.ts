/**
 * What the benchmark and its child processes say to each other: one JSON message a line, on the channel that Node opens
 * beside the standard streams (`fork`), so that whatever a library prints to stdout cannot be mistaken for a message.
 *
 * A child says `ready` once. Then, for every `run`, it says `window-opened`, `window-closed` and `result`; or `failed`, and is done.
 */
export type Command = { readonly type: 'run'; readonly order: LoadOrder } | { readonly type: 'stop' };

export type Message =
  | { readonly type: 'ready'; readonly about: string }
  /** The warm-up is over, and what is counted from now on is measured: the moment to read the server's counters. */
  | { readonly type: 'window-opened' }
  | { readonly type: 'window-closed' }
  | { readonly type: 'result'; readonly result: LoadResult }
  | { readonly type: 'failed'; readonly reason: string };

/**
 * What a worker of the loop does again and again.
 *
 * - `workflow`: start a workflow, wait for its result.
 * - `checkpoint`, `commit`: only known to the bare client, see `bare-loop.ts`.
 */
export type Work = 'workflow' | 'checkpoint' | 'commit';

export interface LoadOrder {
  readonly work: Work;
  readonly steps: number;
  readonly concurrency: number;
  readonly warmUpMs: number;
  readonly measureMs: number;
}

/** Counted between `window-opened` and `window-closed`. */
export interface LoadResult {
  readonly elapsedMs: number;
  readonly steps: number;
  readonly workflows: number;
  readonly latencyMs: Latency | null;
  /** User and system time of the child process. */
  readonly cpuMs: number;
}

/** From the call that starts a workflow until its result is here; `null` in its place when no workflow ended in the window. */
export interface Latency {
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}
