import fc from '../../support/fast-check.js';

// Whatever the stores can be asked to do, in small pools of names, so that operations meet each other.

export const WORKFLOW_IDS = ['w0', 'w1', 'w2', 'w3'] as const;
export const EXECUTOR_IDS = ['x0', 'x1'] as const;
export const QUEUES = ['q0', 'q1', 'q2'] as const;
export const TOPICS = ['t0', 'holdfast:update:t1'] as const;
export const EVENTS = ['e0', 'holdfast:update:m0'] as const;
export const OUTBOX_TOPICS = ['o0', 'o1'] as const;
export const STREAMS = ['s0', 's1'] as const;
export const REQUEST_IDS = ['00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000002'] as const;
const NAMES = ['flow', 'other'] as const;
const APP_VERSIONS = ['v1', 'v2'] as const;

const workflowId = fc.constantFrom(...WORKFLOW_IDS);
const name = fc.constantFrom(NAMES[0], NAMES[0], NAMES[0], NAMES[1]);
const executor = fc.nat(EXECUTOR_IDS.length - 1);
const topic = fc.constantFrom(...TOPICS);
const seq = fc.nat(4);
const text = fc.nat(99).map((number) => JSON.stringify(number));
const error = fc.constantFrom('"failed"', '"broken"');
const close = fc.constantFrom('cancel' as const, 'abandon' as const);
const elapsedMs = fc.constantFrom(0, 7);
/** Which of the ownerships that were ever had: those that were given up or lost come last. */
const own = fc.oneof({ weight: 6, arbitrary: fc.nat(1) }, { weight: 1, arbitrary: fc.nat(9) });
const timeoutMs = fc.constantFrom(null, null, 5_000);
const maxAttempts = fc.constantFrom(100, 100, 1, 2);
const limit = fc.option(fc.integer({ min: 1, max: 3 }), { freq: 2 });
const rate = fc.option(fc.record({ limit: fc.integer({ min: 1, max: 2 }), periodMs: fc.constantFrom(1_000, 60_000) }), {
  freq: 1,
});

const started = fc.record({
  workflowId,
  name,
  instance: fc.constantFrom(null, null, 'i'),
  input: text,
  maxAttempts,
  timeoutMs,
  attributes: fc.constantFrom(null, '{"a": 1}'),
});
const enqueued = fc.record({
  workflowId,
  name,
  instance: fc.constant(null),
  input: text,
  maxAttempts,
  timeoutMs,
  attributes: fc.constant(null),
  queue: fc.constantFrom(null, ...QUEUES, ...QUEUES),
  priority: fc.constantFrom(0, 0, 0, 1),
  key: fc.constantFrom(null, 'k0', 'k1'),
  delayMs: fc.constantFrom(0, 0, 0, 300),
  deduplication: fc.option(
    fc.record({
      id: fc.constantFrom('d0', 'd1'),
      windowMs: fc.constantFrom(null, null, 2_000),
      onConflict: fc.constantFrom('reject' as const, 'attach' as const),
      cancelledError: fc.constantFrom(null, null, '"older"'),
    }),
    { freq: 1 },
  ),
  debounce: fc.constant(null),
});
const debounced = fc
  .tuple(enqueued, fc.record({ key: fc.constantFrom('b0', 'b1'), maxWaitMs: fc.constantFrom(null, 400) }))
  .map(([request, debounce]) => ({ ...request, deduplication: null, delayMs: 300, debounce }));
const wait = fc.oneof(
  fc.constant({ kind: 'timer' as const }),
  fc.record({ kind: fc.constant('outcome' as const), workflowId }),
  fc.record({ kind: fc.constant('message' as const), topic }),
  fc.record({ kind: fc.constant('event' as const), workflowId, key: fc.constantFrom(...EVENTS) }),
);
const sleep = fc.oneof(
  fc.constantFrom({ ms: 0 }, { ms: 500 }, { ms: 3_000 }),
  fc.constantFrom(-1_000, 700).map((inMs) => ({ inMs })),
);

const event = fc.record({
  topic: fc.constantFrom(...OUTBOX_TOPICS),
  key: fc.constantFrom(null, 'k0', 'k0', 'k1'),
  payload: text,
});

const executions = {
  start: fc.record({
    op: fc.constant('start' as const),
    executor,
    appVersion: fc.constantFrom(...APP_VERSIONS),
    start: started,
  }),
  checkpoint: fc.record({
    op: fc.constant('checkpoint' as const),
    own,
    seq,
    fails: fc.boolean(),
    childId: fc.constantFrom(null, null, ...WORKFLOW_IDS),
    text,
    elapsedMs,
    events: fc.oneof({ weight: 3, arbitrary: fc.constant([]) }, fc.array(event, { minLength: 1, maxLength: 2 })),
  }),
  sleep: fc.record({ op: fc.constant('sleep' as const), own, seq, sleep }),
  intend: fc.record({ op: fc.constant('intend' as const), own, seq }),
  markUnknown: fc.record({
    op: fc.constant('markUnknown' as const),
    own,
    seq,
    attempts: fc.integer({ min: 1, max: 2 }),
  }),
  startChild: fc.record({ op: fc.constant('startChild' as const), own, seq, child: started, close }),
  enqueueChild: fc.record({
    op: fc.constant('enqueueChild' as const),
    own,
    seq,
    child: fc.oneof(enqueued, debounced),
    close,
  }),
  receive: fc.record({
    op: fc.constant('receive' as const),
    own,
    seq,
    topic,
    otherwise: fc.constantFrom(null, '"none"'),
    elapsedMs,
  }),
  send: fc.record({
    op: fc.constant('send' as const),
    own,
    seq,
    receiver: workflowId,
    topic,
    text,
    idempotencyKey: fc.constantFrom(null, null, EVENTS[1]),
  }),
  setEvent: fc.record({ op: fc.constant('setEvent' as const), own, seq, key: fc.constantFrom(...EVENTS), text }),
  writeStream: fc.record({
    op: fc.constant('writeStream' as const),
    own,
    seq,
    stream: fc.constantFrom(...STREAMS),
    text,
    by: fc.oneof(
      { weight: 2, arbitrary: fc.constant({ kind: 'stream' as const }) },
      { weight: 1, arbitrary: fc.constant({ kind: 'stream-close' as const }) },
      {
        weight: 2,
        arbitrary: fc.record({
          kind: fc.constant('attempt' as const),
          attempt: fc.integer({ min: 1, max: 2 }),
          oncePlace: fc.constantFrom(null, 0, 1),
        }),
      },
    ),
  }),
  complete: fc.record({
    op: fc.constant('complete' as const),
    own,
    fails: fc.boolean(),
    text,
    attention: fc.constantFrom(null, 'OUTCOME_UNKNOWN', 'WRITE_REFUSED'),
  }),
  release: fc.record({
    op: fc.constant('release' as const),
    own,
    release: fc.oneof(
      fc.record({ to: fc.constant('ENQUEUED' as const), unspendAttempt: fc.boolean() }),
      fc.record({
        to: fc.constant('DELAYED' as const),
        wakeInMs: fc.constantFrom(0, 400),
        unspendAttempt: fc.boolean(),
      }),
      fc.record({ to: fc.constant('BLOCKED' as const), attention: fc.constant('STUCK'), detail: fc.constant('why') }),
    ),
  }),
  continueAsNew: fc.record({
    op: fc.constant('continueAsNew' as const),
    own,
    input: text,
    firstSeq: fc.integer({ min: 1, max: 4 }),
    unreceived: fc.oneof(fc.constant([]), fc.subarray([0, 1, 2, 3])),
  }),
  suspend: fc.record({
    op: fc.constant('suspend' as const),
    own,
    waits: fc.array(wait, { minLength: 1, maxLength: 3 }),
  }),
  failStuck: fc.record({ op: fc.constant('failStuck' as const), own, error }),
  markStuck: fc.record({ op: fc.constant('markStuck' as const), own, detail: fc.constantFrom(null, 'slow') }),
  /** A second holder of the same token, which does not learn what the first one writes. */
  copyOwnership: fc.record({ op: fc.constant('copyOwnership' as const), own }),
};

const fleet = {
  register: fc.record({ op: fc.constant('register' as const), executor, leaseMs: fc.constantFrom(1_000, 600_000) }),
  heartbeat: fc.record({ op: fc.constant('heartbeat' as const), executor, leaseMs: fc.constantFrom(1_000, 600_000) }),
  deregister: fc.record({ op: fc.constant('deregister' as const), executor }),
  claim: fc.record({
    op: fc.constant('claim' as const),
    executor,
    appVersion: fc.constantFrom(APP_VERSIONS[0], APP_VERSIONS[0], APP_VERSIONS[1]),
    names: fc.constantFrom(['flow', 'other'], ['flow', 'other'], ['flow']),
    limit: fc.constantFrom(1, 2, 100, 100),
    only: fc.option(fc.subarray([...WORKFLOW_IDS]), { freq: 8 }),
  }),
  advance: fc.record({ op: fc.constant('advance' as const), ms: fc.constantFrom(60, 600, 5_000, 70_000) }),
};

const outside = {
  enqueue: fc.record({ op: fc.constant('enqueue' as const), request: fc.oneof(enqueued, enqueued, debounced) }),
  sendOutside: fc.record({
    op: fc.constant('sendOutside' as const),
    message: fc.record({
      workflowId,
      topic,
      payload: text,
      idempotencyKey: fc.constantFrom(null, 'm0', EVENTS[1], EVENTS[1]),
    }),
  }),
  ask: fc.record({
    op: fc.constant('ask' as const),
    workflowId,
    requestId: fc.constantFrom(...REQUEST_IDS),
    timeoutMs: fc.constantFrom(100, 100_000),
  }),
  answer: fc.record({
    op: fc.constant('answer' as const),
    workflowId,
    requestId: fc.constantFrom(...REQUEST_IDS),
    text,
  }),
  defineQueue: fc.record({
    op: fc.constant('defineQueue' as const),
    isDeclaration: fc.boolean(),
    queue: fc.record({
      name: fc.constantFrom(...QUEUES),
      concurrency: limit,
      executorConcurrency: limit,
      keyConcurrency: limit,
      rateLimit: rate,
      keyRateLimit: rate,
    }),
  }),
  pauseQueue: fc.record({
    op: fc.constant('pauseQueue' as const),
    queue: fc.constantFrom(...QUEUES),
    paused: fc.boolean(),
  }),
  deleteQueue: fc.record({
    op: fc.constant('deleteQueue' as const),
    queue: fc.constantFrom(...QUEUES),
    release: fc.boolean(),
  }),
  addEvent: fc.record({ op: fc.constant('addEvent' as const), event }),
  claimEvents: fc.record({ op: fc.constant('claimEvents' as const), limit: fc.constant(100) }),
  settleEvent: fc.record({
    op: fc.constant('settleEvent' as const),
    claim: fc.nat(3),
    outcome: fc.oneof(
      fc.constant({ kind: 'delivered' as const }),
      fc.constant({ kind: 'retry' as const, delayMs: 400, error: '"e"' }),
      fc.constant({ kind: 'released' as const }),
      fc.record({
        kind: fc.constant('dead' as const),
        reason: fc.constant('REFUSED' as const),
        error: fc.constantFrom(null, '"d"'),
      }),
    ),
  }),
  redeliver: fc.record({ op: fc.constant('redeliver' as const), place: fc.nat(2) }),
  discard: fc.record({ op: fc.constant('discard' as const), place: fc.nat(2) }),
  clearDeduplication: fc.record({ op: fc.constant('clearDeduplication' as const) }),
};

const control = {
  cancel: fc.record({
    compensate: fc.boolean(),
    op: fc.constant('cancel' as const),
    workflowId,
    children: fc.constantFrom('cancel' as const, 'keep' as const),
  }),
  resume: fc.record({ op: fc.constant('resume' as const), workflowId }),
  rewind: fc.record({ op: fc.constant('rewind' as const), workflowId, toStep: fc.nat(4) }),
  repairStep: fc.record({
    op: fc.constant('repairStep' as const),
    workflowId,
    seq,
    resume: fc.boolean(),
    repair: fc.constantFrom(
      'result' as const,
      'skip' as const,
      'error' as const,
      'not-happened' as const,
      'retry' as const,
    ),
  }),
  fork: fc.record({ op: fc.constant('fork' as const), workflowId, to: workflowId, fromStep: fc.nat(4) }),
  delete: fc.record({ op: fc.constant('delete' as const), workflowId, force: fc.boolean() }),
  prioritize: fc.record({ op: fc.constant('prioritize' as const), workflowId, priority: fc.nat(2) }),
  setAppVersion: fc.record({
    op: fc.constant('setAppVersion' as const),
    workflowId,
    appVersion: fc.constantFrom(...APP_VERSIONS),
  }),
};

export const operation = fc.oneof(
  { weight: 4, arbitrary: executions.start },
  { weight: 4, arbitrary: executions.checkpoint },
  { weight: 2, arbitrary: executions.sleep },
  { weight: 1, arbitrary: executions.intend },
  { weight: 1, arbitrary: executions.markUnknown },
  { weight: 3, arbitrary: executions.startChild },
  { weight: 2, arbitrary: executions.enqueueChild },
  { weight: 5, arbitrary: executions.receive },
  { weight: 2, arbitrary: executions.send },
  { weight: 2, arbitrary: executions.setEvent },
  { weight: 4, arbitrary: executions.writeStream },
  { weight: 2, arbitrary: executions.complete },
  { weight: 2, arbitrary: executions.release },
  { weight: 2, arbitrary: executions.continueAsNew },
  { weight: 4, arbitrary: executions.suspend },
  { weight: 1, arbitrary: executions.failStuck },
  { weight: 1, arbitrary: executions.markStuck },
  { weight: 2, arbitrary: executions.copyOwnership },
  { weight: 1, arbitrary: fleet.register },
  { weight: 1, arbitrary: fleet.heartbeat },
  { weight: 1, arbitrary: fleet.deregister },
  { weight: 10, arbitrary: fleet.claim },
  { weight: 3, arbitrary: fleet.advance },
  { weight: 5, arbitrary: outside.enqueue },
  { weight: 4, arbitrary: outside.sendOutside },
  { weight: 1, arbitrary: outside.ask },
  { weight: 1, arbitrary: outside.answer },
  { weight: 2, arbitrary: outside.defineQueue },
  { weight: 1, arbitrary: outside.pauseQueue },
  { weight: 1, arbitrary: outside.deleteQueue },
  { weight: 1, arbitrary: outside.addEvent },
  { weight: 2, arbitrary: outside.claimEvents },
  { weight: 2, arbitrary: outside.settleEvent },
  { weight: 1, arbitrary: outside.redeliver },
  { weight: 1, arbitrary: outside.discard },
  { weight: 1, arbitrary: outside.clearDeduplication },
  { weight: 2, arbitrary: control.cancel },
  { weight: 3, arbitrary: control.resume },
  { weight: 3, arbitrary: control.rewind },
  { weight: 2, arbitrary: control.repairStep },
  { weight: 2, arbitrary: control.fork },
  { weight: 1, arbitrary: control.delete },
  { weight: 1, arbitrary: control.prioritize },
  { weight: 1, arbitrary: control.setAppVersion },
);

export type Operation = typeof operation extends fc.Arbitrary<infer Kind> ? Kind : never;
