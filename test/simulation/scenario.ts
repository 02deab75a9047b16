/** A call of a simulated workflow. Times are milliseconds. */
export type Call =
  | { readonly do: 'step'; readonly ms: number; readonly fails: number }
  | { readonly do: 'all'; readonly branches: readonly Program[] }
  | { readonly do: 'child'; readonly program: Program }
  | { readonly do: 'sleep'; readonly ms: number }
  | { readonly do: 'receive'; readonly topic: Topic; readonly ms: number }
  | { readonly do: 'send'; readonly to: number; readonly topic: Topic }
  | { readonly do: 'undoable'; readonly ms: number }
  /** What became of another workflow, of a higher number, so that they do not wait for each other. */
  | { readonly do: 'outcome'; readonly of: number }
  /** Reads the event that another workflow sets. */
  | { readonly do: 'read'; readonly of: number; readonly ms: number }
  | { readonly do: 'event' }
  | { readonly do: 'value' }
  /** Whatever it throws is ignored, also the loss of ownership. */
  | { readonly do: 'ignore'; readonly program: Program }
  | { readonly do: 'fail' };

export type Program = readonly Call[];
export type Topic = 'a' | 'b';

export interface PlannedWorkflow {
  readonly at: number;
  /** Which executor starts it, or `null`: it is enqueued. */
  readonly by: number | null;
  readonly queue: QueueName | null;
  readonly timeoutMs: number | null;
  readonly program: Program;
}

export type QueueName = 'one' | 'one-each';

/** What somebody does from outside. */
export type Act = { readonly at: number; readonly workflow: number } & (
  | { readonly act: 'cancel' | 'undo' | 'resume' | 'prioritize' }
  | { readonly act: 'rewind'; readonly toStep: number }
  | { readonly act: 'send'; readonly topic: Topic; readonly count: number }
);

/** What becomes of a call to the store. */
export type Fate =
  /** It does not arrive. */
  | 'request-lost'
  /** It takes effect, and nobody hears of it. */
  | 'reply-lost'
  /** It takes effect long after its sender gave it up. */
  | 'late'
  /** It takes effect; its sender waits in vain for longer than a lease. */
  | 'hole'
  /** It takes effect; the reply comes long after. */
  | 'slow-reply';

export type Fault = { readonly at: number; readonly process: number } & (
  | { readonly fault: 'crash'; readonly restartMs: number | null; readonly sameId: boolean }
  /** `asleep`: the machine is suspended, and the monotonic clock stands still. */
  | { readonly fault: 'pause'; readonly ms: number; readonly asleep: boolean }
  | { readonly fault: 'calls'; readonly fate: Fate; readonly count: number }
  | { readonly fault: 'slow-store'; readonly ms: number }
  | { readonly fault: 'expire' | 'leave' | 'join' | 'twin' | 'wake' }
  | { readonly fault: 'set-clock'; readonly byMs: number }
);

/** All that a run is made of. Two runs of equal scenarios are equal. */
export interface Scenario {
  readonly executors: number;
  readonly workflows: readonly PlannedWorkflow[];
  readonly acts: readonly Act[];
  readonly faults: readonly Fault[];
  /** Whether another executor comes when everybody is well again: always, or when no other is left. */
  readonly healer: 'always' | 'if-needed';
  /** Decides how long everything takes, and so in which order it happens. */
  readonly seed: number;
}

/** How long the calls of a program take at least, one after the other, in milliseconds. */
export function workOf(calls: Program): number {
  return calls.reduce((sum, call) => {
    switch (call.do) {
      case 'step':
        return sum + (call.ms + 25) * (call.fails + 1);
      case 'undoable':
        // It is undone as well.
        return sum + 2 * call.ms + 25;
      case 'sleep':
      case 'receive':
      case 'read':
        return sum + call.ms;
      case 'all':
        return sum + call.branches.reduce((most, branch) => most + workOf(branch), 0);
      case 'child':
      case 'ignore':
        return sum + workOf(call.program);
      case 'outcome':
      case 'send':
      case 'event':
      case 'value':
      case 'fail':
        return sum;
    }
  }, 0);
}
