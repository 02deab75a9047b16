/** Parameters of the model, as macros; see holdfast.pml. */
export type Parameters = Readonly<Record<string, number | string>>;

/** What must never be, by the number that the macro ONLY takes. The assertions in the model carry the names. */
export const SAFETY = {
  one_outcome: 1,
  same_outcome: 2,
  owner_writes: 3,
  results_stay: 4,
  no_rerun: 5,
  effect_once: 6,
  acks_resolved: 7,
  loss_sticks: 8,
} as const;

/** What must come about in the end, by the macro that defines the formula. */
export const LIVENESS = { ends: 'ENDS', wakes: 'WAKES', frees: 'FREES' } as const;

export type SafetyProperty = keyof typeof SAFETY;
export type LivenessProperty = keyof typeof LIVENESS;

/** How much is searched: `quick` in the test suite, `usual` by `npm run model` and in CI, `large` by `--large`. */
export type Size = 'quick' | 'usual' | 'large';

export interface Configuration {
  readonly name: string;
  readonly size: Size;
  /** Checked are all that must never be; or the one that must come about. */
  readonly liveness?: LivenessProperty;
  readonly parameters: Parameters;
}

const TRANSACTION: Parameters = { SECOND: 'TRANSACTION' };
const RECEIVE: Parameters = { FIRST: 'RECEIVE' };

/** The model itself: none may find anything. */
export const CONFIGURATIONS: readonly Configuration[] = [
  { name: 'steps', size: 'quick', parameters: { LOSSES: 1, LAPSES: 1, CRASHES: 1 } },
  { name: 'steps, replies lost', size: 'usual', parameters: { LOSSES: 2, LAPSES: 2, CRASHES: 1 } },
  { name: 'steps, versions moved', size: 'usual', parameters: { LOSSES: 1, LAPSES: 1, BUMPS: 1, LEAVES: 1 } },
  { name: 'steps, cancelled', size: 'usual', parameters: { LOSSES: 1, CRASHES: 1, BUMPS: 1, CANCELS: 1 } },
  { name: 'steps, three executors', size: 'usual', parameters: { N: 3, LOSSES: 1, LAPSES: 1, CRASHES: 1 } },
  { name: 'transaction', size: 'usual', parameters: { ...TRANSACTION, LOSSES: 2, LAPSES: 1, BUMPS: 1 } },
  {
    name: 'transaction, frozen',
    size: 'usual',
    parameters: { ...TRANSACTION, LOSSES: 1, LAPSES: 1, CRASHES: 1, FREEZES: 1 },
  },
  { name: 'transaction, cancelled', size: 'usual', parameters: { ...TRANSACTION, LOSSES: 1, CRASHES: 1, CANCELS: 1 } },
  { name: 'message', size: 'usual', parameters: { ...RECEIVE, LOSSES: 1, LAPSES: 1, CRASHES: 1 } },
  { name: 'message, cancelled', size: 'usual', parameters: { ...RECEIVE, LOSSES: 1, CANCELS: 1 } },
  { name: 'steps', size: 'usual', liveness: 'ends', parameters: { LOSSES: 1, LAPSES: 1, CRASHES: 1 } },
  { name: 'transaction', size: 'quick', liveness: 'ends', parameters: { ...TRANSACTION, FREEZES: 1 } },
  {
    name: 'transaction, replies lost',
    size: 'usual',
    liveness: 'ends',
    parameters: { ...TRANSACTION, LOSSES: 1, FREEZES: 1 },
  },
  {
    name: 'transaction',
    size: 'usual',
    liveness: 'frees',
    parameters: { ...TRANSACTION, LOSSES: 1, FREEZES: 1 },
  },
  { name: 'message', size: 'usual', liveness: 'ends', parameters: { ...RECEIVE, LOSSES: 1, CRASHES: 1 } },
  { name: 'message', size: 'usual', liveness: 'wakes', parameters: { ...RECEIVE, LOSSES: 1, CRASHES: 1 } },
  {
    name: 'transaction, dead',
    size: 'large',
    liveness: 'ends',
    parameters: { ...TRANSACTION, LOSSES: 1, CRASHES: 1, FREEZES: 1 },
  },
  {
    name: 'steps, all at once',
    size: 'large',
    parameters: { LOSSES: 1, LAPSES: 1, CRASHES: 1, BUMPS: 1, LEAVES: 1 },
  },
  { name: 'steps, cancelled and lost', size: 'large', parameters: { LOSSES: 1, LAPSES: 1, BUMPS: 1, CANCELS: 1 } },
  {
    name: 'transaction, three executors',
    size: 'large',
    parameters: { ...TRANSACTION, N: 3, LOSSES: 1, LAPSES: 1, FREEZES: 1 },
  },
  { name: 'message, versions moved', size: 'large', parameters: { ...RECEIVE, LOSSES: 2, LAPSES: 1, BUMPS: 1 } },
  {
    name: 'transaction, three executors',
    size: 'large',
    liveness: 'ends',
    parameters: { ...TRANSACTION, N: 3, FREEZES: 1, CRASHES: 1 },
  },
];

export interface Mutant {
  /** The macro. */
  readonly name: string;
  readonly meaning: string;
  /** Each has to find it alone, with no other property checked. */
  readonly foundBy: readonly (SafetyProperty | LivenessProperty)[];
  readonly parameters: Parameters;
}

const FEW: Parameters = { LOSSES: 1, LAPSES: 1, BUMPS: 1 };
const FROZEN: Parameters = { ...TRANSACTION, FREEZES: 1 };

/** The model with one rule broken: each has to be found. */
export const MUTANTS: readonly Mutant[] = [
  {
    name: 'NO_TOKEN',
    meaning: 'the token is not compared',
    foundBy: ['owner_writes', 'one_outcome'],
    parameters: FEW,
  },
  {
    name: 'NO_VERSION',
    meaning: 'the version is not compared',
    foundBy: ['results_stay', 'ends'],
    parameters: { ...RECEIVE, LOSSES: 1 },
  },
  {
    name: 'CHECK_APART',
    meaning: 'the check is a transaction of its own',
    foundBy: ['owner_writes', 'results_stay'],
    parameters: FEW,
  },
  {
    name: 'NO_NONCE',
    meaning: 'a write does not recognise its own earlier commit',
    foundBy: ['acks_resolved'],
    parameters: FEW,
  },
  {
    name: 'UNKNOWN_IS_FAILURE',
    meaning: 'no reply is taken for a failure',
    foundBy: ['no_rerun'],
    parameters: FEW,
  },
  {
    name: 'UNKNOWN_IS_SUCCESS',
    meaning: 'no reply is taken for a success',
    foundBy: ['acks_resolved', 'same_outcome'],
    parameters: FEW,
  },
  {
    name: 'PARKED_TELLS_ITS_OWN',
    meaning: 'a parked execution returns its own result',
    foundBy: ['same_outcome'],
    parameters: FEW,
  },
  {
    name: 'TOKEN_REUSED',
    meaning: 'a restarted process makes the same token again',
    foundBy: ['owner_writes'],
    parameters: FEW,
  },
  {
    name: 'HEARTBEAT_REVIVES',
    meaning: 'a renewed lease is trusted without a look at what was lost meanwhile',
    foundBy: ['no_rerun'],
    parameters: FEW,
  },
  {
    name: 'LOSS_NOT_STICKY',
    meaning: 'an execution goes on after it was told of its loss',
    foundBy: ['loss_sticks'],
    parameters: FEW,
  },
  {
    name: 'ADOPTS_UNSEEN',
    meaning: 'what is claimed and what is given back do not know of each other',
    foundBy: ['no_rerun'],
    parameters: { LOSSES: 2, LAPSES: 1 },
  },
  {
    name: 'COMMITS_TWICE',
    meaning: 'a transaction whose result is there already commits its body again',
    foundBy: ['effect_once'],
    parameters: { ...TRANSACTION, ...FEW },
  },
  {
    name: 'EFFECT_APART',
    meaning: 'a transaction commits its body before its result',
    foundBy: ['effect_once'],
    parameters: { ...TRANSACTION, ...FEW },
  },
  {
    name: 'NO_IDLE_TIMEOUT',
    meaning: 'the session of a frozen process lives for ever',
    foundBy: ['frees', 'ends'],
    parameters: FROZEN,
  },
  {
    name: 'WAKEUP_NOT_RECORDED',
    meaning: 'only what is seen to be suspended gets a wake-up',
    foundBy: ['wakes', 'ends'],
    parameters: RECEIVE,
  },
  {
    name: 'DRAINS_WITHOUT_LOCK',
    meaning: 'a wake-up is removed without the lock of the row',
    foundBy: ['wakes', 'ends'],
    parameters: RECEIVE,
  },
];
