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
 * - `queued`: enqueue a workflow, wait for its result; in the process that runs it.
 * - `queued-remotely`: the same with a client that shares nothing with the executor but the database.
 * - `drain`: enqueue many workflows, wait until all have ended.
 * - `transaction`: start a workflow each of whose steps is a `@Transaction` that inserts a row; of the bare client, two
 *   inserts, row and record, in transactions by hand.
 * - `checkpoint`, `commit`, `checked-transaction`: only known to the bare client, see `bare-loop.ts`.
 */
export type Work =
  'workflow' | 'transaction' | 'queued' | 'queued-remotely' | 'drain' | 'checkpoint' | 'commit' | 'checked-transaction';

export interface LoadOrder {
  readonly work: Work;
  readonly steps: number;
  readonly concurrency: number;
  readonly warmUpMs: number;
  readonly measureMs: number;
  /** For the work that goes through a queue. */
  readonly queue: QueueOrder | null;
}

/** The queue of a scenario. */
export interface QueueOrder {
  /** Workflows enqueued for one drain. */
  readonly batch: number;
  /** Workflows of the queue that may run at the same time; `null`: any number. */
  readonly concurrency: number | null;
  /** How often the peer looks for work and for results; `null`: its defaults. */
  readonly peerPollingMs: number | null;
}

/** Counted between `window-opened` and `window-closed`. */
export interface LoadResult {
  readonly elapsedMs: number;
  readonly steps: number;
  readonly workflows: number;
  readonly latencyMs: Latency | null;
  /** From the call that enqueues a workflow until its code runs; only of work that waits for one workflow in a queue. */
  readonly startDelayMs: Latency | null;
  /** User and system time of the child process. */
  readonly cpuMs: number;
}

/** From the call that starts a workflow until its result is here; `null` in its place when no workflow ended in the window. */
export interface Latency {
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}
