import type { StatementRunner } from './queue-store.js';
import type { EventToAdd } from './event-to-add.js';
import type { Refused } from './refusals.js';

/** An event that is added from outside of workflows. */
export interface OutsideEvent extends EventToAdd {
  /** A random UUID: a retry recognises its own earlier commit by it. */
  readonly eventId: string;
}

/** The outbox, but for what executions add with their own record. */
export interface OutboxStore {
  /** Adds an event, and tells relays. */
  add(event: OutsideEvent): Promise<AddAnswer>;
  /** The same inside a transaction of the caller's. Relays are told when it commits. */
  addIn(transaction: StatementRunner, event: OutsideEvent): Promise<void>;
  /** Takes events that are due, of each topic up to its limit. Not tried again: what a lost reply has taken is due again after the lease. */
  claim(topics: readonly TopicLimit[], leaseMs: number): Promise<readonly ClaimedEvent[]>;
  /** Says what came of a claimed event. `lost`: somebody else has it, or it is gone; nothing was written. */
  settle(settlement: Settlement): Promise<SettleAnswer>;
  close(): void;
}

export type AddAnswer = { readonly kind: 'added' } | Refused;
export type SettleAnswer = { readonly kind: 'settled' } | { readonly kind: 'lost' } | Refused;

export interface TopicLimit {
  readonly topic: string;
  readonly limit: number;
}

export interface ClaimedEvent {
  readonly eventId: string;
  readonly topic: string;
  readonly key: string | null;
  readonly payload: string;
  /** Shown when it is settled. */
  readonly token: string;
  /** This one included. */
  readonly attempts: number;
  readonly workflowId: string | null;
  readonly addedAt: Date;
}

/** Why an event is dead. */
export type DeathReason = 'ATTEMPTS_EXHAUSTED' | 'REFUSED';

/** Errors are encoded; null: the one before stays. */
export type EventOutcome =
  | { readonly kind: 'delivered' }
  | { readonly kind: 'retry'; readonly delayMs: number; readonly error: string }
  /** Given back: this was no attempt. */
  | { readonly kind: 'released' }
  | { readonly kind: 'dead'; readonly reason: DeathReason; readonly error: string | null };

export interface Settlement {
  readonly eventId: string;
  readonly token: string;
  readonly outcome: EventOutcome;
}
