/** What a run was judged to have done wrong. */
export interface Violation {
  readonly judge: Judge;
  readonly text: string;
  /** Virtual milliseconds from the beginning of the run. */
  readonly at: number;
}

export const JUDGES = [
  'one-outcome',
  'same-outcome',
  'owner-writes',
  'results-stay',
  'versions',
  'fencing',
  'bodies',
  'timers',
  'messages',
  'rollbacks',
  'limits',
  'takeovers',
  'kept',
  'ends',
  'errors',
] as const;

export type Judge = (typeof JUDGES)[number];

/** How much happened in a run: with too little of it, it shows nothing. */
export interface Counts {
  workflows: number;
  bodies: number;
  takeovers: number;
  refusedWrites: number;
  parked: number;
  /** Calls that changed something, of which nobody heard. */
  unheard: number;
  suspended: number;
  resumedBodies: number;
  versionConflicts: number;
  messages: number;
  rewinds: number;
  rollbacks: number;
  timeouts: number;
  crashes: number;
  pauses: number;
  /** Bodies that began in a process that did not know yet that it had lost the workflow, and could not. */
  lateBodies: number;
  happenings: number;
}

export function newCounts(): Counts {
  return {
    workflows: 0,
    bodies: 0,
    takeovers: 0,
    refusedWrites: 0,
    parked: 0,
    unheard: 0,
    suspended: 0,
    resumedBodies: 0,
    versionConflicts: 0,
    messages: 0,
    rewinds: 0,
    rollbacks: 0,
    timeouts: 0,
    crashes: 0,
    pauses: 0,
    lateBodies: 0,
    happenings: 0,
  };
}

export function addCounts(sum: Counts, more: Counts): void {
  for (const key of Object.keys(sum) as (keyof Counts)[]) sum[key] += more[key];
}
