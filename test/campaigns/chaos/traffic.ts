/** What a workflow of the campaign does. */
export const KINDS = [
  /** Three steps, then three at once, then one. */
  'steps',
  /** One step. */
  'short',
  /** A step, two transactions, a step. */
  'paying',
  /** Two children, one after the other, then two at once. */
  'parent',
  /** Two sleeps with a step between them; the second one is long enough to be unloaded. */
  'sleeper',
  /** Sets an event, and sets it again. */
  'herald',
  /** A step, and an event of the outbox. */
  'poster',
  /** Started by the client alone: steps in a queue with limits, and the receiver of the client's messages. */
  'queued',
  'mailbox',
] as const;

export type Kind = (typeof KINDS)[number];

/** How often each kind is started, in relation to the others. */
export type Traffic = Readonly<Partial<Record<Kind, number>>>;

export const MIXED: Traffic = {
  steps: 4,
  short: 3,
  paying: 3,
  parent: 2,
  sleeper: 2,
  herald: 1,
  poster: 2,
  queued: 4,
  mailbox: 2,
};

/** The kinds that the client starts, and those that executors start themselves. */
export const CLIENT_KINDS: readonly Kind[] = ['queued', 'mailbox'];

/** The queue of `queued`, and its limits. */
export const QUEUE = { name: 'chaos', concurrency: 6, keyConcurrency: 3 } as const;
export const QUEUE_KEYS = 3;
/** What the input of a `queued` begins with that is in no queue, so that no limit holds for it. */
export const NO_QUEUE = 'no queue';

export const MAILBOX_TOPIC = 'mail';
export const OUTBOX_TOPIC = 'post';

/** One kind, drawn by weight. `roll` is from 0 to 1. */
export function drawKind(traffic: Traffic, among: (kind: Kind) => boolean, roll: number): Kind | undefined {
  const kinds = KINDS.filter((kind) => among(kind) && (traffic[kind] ?? 0) > 0);
  let rest = roll * kinds.reduce((sum, kind) => sum + (traffic[kind] ?? 0), 0);
  return kinds.find((kind) => (rest -= traffic[kind] ?? 0) < 0) ?? kinds.at(-1);
}
