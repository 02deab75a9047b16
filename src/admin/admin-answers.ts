import type { StoredValue } from '../api/stored-value.js';
import type { WorkflowStatus } from '../api/workflow-handle.js';

/** How the fleet is doing. Counting stops at 10,000: that number means that many at least. */
export interface FleetOverview {
  /** Executors whose leases last, by app version. */
  readonly executors: readonly { readonly appVersion: string; readonly count: number }[];
  /** Workflows outside of queues that could be claimed, and are not yet. */
  readonly waiting: number;
  readonly queues: readonly {
    readonly name: string;
    readonly waiting: number;
    /** Workflows that hold a slot. */
    readonly running: number;
  }[];
  /** Workflows that wait for a time, or are suspended. */
  readonly delayed: number;
  /** Workflows that wait for a person: `list({ attention: true })`. */
  readonly attention: number;
  /** Events of the outbox. */
  readonly outbox: {
    /** To be delivered. */
    readonly pending: number;
    /** Waiting for a person: `outbox.list({ state: 'dead' })`. */
    readonly dead: number;
    /** Age of the oldest one that is to be delivered, in seconds; 0: there is none. */
    readonly lagSeconds: number;
  };
  readonly unservedVersions: readonly UnservedVersion[];
}

/** An app version that workflows wait for in vain. */
export interface UnservedVersion {
  readonly appVersion: string;
  /** How many; 10,000 means that many at least. */
  readonly workflows: number;
  /** Since when one of these has waited. */
  readonly since: Date;
}

/** What a control operation did to one workflow. */
export interface ControlResult {
  readonly workflowId: string;
  /** `unchanged`: it was that way already, and nothing was written. */
  readonly result: 'done' | 'unchanged';
  readonly statusBefore: WorkflowStatus;
  /** Null: there is no workflow of that ID any more. */
  readonly statusAfter: WorkflowStatus | null;
}

/** One of several: what was done, or the error that the call for this ID alone would have thrown. */
export type BulkResult =
  (ControlResult & { readonly ok: true }) | { readonly ok: false; readonly workflowId: string; readonly error: Error };

export interface ForkResult {
  /** ID of the new workflow. */
  readonly workflowId: string;
}

export interface Page<Item> {
  readonly items: readonly Item[];
  /**
   * Begins the next page; null on the last one. Good for the same list in the same order for ever. Pages may be shorter
   * than `limit` when payloads are large.
   */
  readonly nextCursor: string | null;
}

interface AttentionReason {
  /** Stable; docs/attention.md has all of them. */
  readonly code: string;
  /** What was found. */
  readonly detail: string | null;
  readonly since: Date;
  /** What the code stands for, in words. */
  readonly meaning: string;
  /** What a person can do, with the operations that apply. */
  readonly whatToDo: string;
  /** Attempts so far. */
  readonly attempts: number;
}

/** Something that waits for a person. */
export type AttentionEntry =
  | (AttentionReason & {
      readonly kind: 'workflow';
      readonly workflowId: string;
      readonly name: string;
      readonly status: WorkflowStatus;
    })
  /** An event of the outbox. */
  | (AttentionReason & {
      readonly kind: 'event';
      readonly eventId: string;
      readonly topic: string;
      readonly key: string | null;
      /** The workflow that added it; null: it was added outside of workflows. */
      readonly workflowId: string | null;
    });

export interface OutboxEventDetails {
  readonly eventId: string;
  readonly topic: string;
  readonly key: string | null;
  /** `waiting`: behind another event of its topic and key. `due`: delivered at `dueAt`, or being delivered. */
  readonly state: 'waiting' | 'due' | 'dead';
  readonly workflowId: string | null;
  readonly attempts: number;
  /** While it is being delivered: when another executor may take it. */
  readonly dueAt: Date | null;
  /** Why it is dead: all attempts failed, or its handler refused it for good. */
  readonly reason: 'ATTEMPTS_EXHAUSTED' | 'REFUSED' | null;
  readonly addedAt: Date;
  readonly diedAt: Date | null;
  /** Only with `payload`. */
  readonly payload?: StoredValue;
  /** Only with `payload`, when an attempt has failed. */
  readonly lastError?: StoredValue;
}

/** What was done to one event. */
export interface EventControlResult {
  readonly eventId: string;
  readonly result: 'done' | 'unchanged';
}

export interface WorkflowDetails {
  readonly workflowId: string;
  readonly name: string;
  readonly instance: string | null;
  readonly status: WorkflowStatus;
  /** Number of the newest ownership; 0: it was never owned. */
  readonly epoch: number;
  readonly recordVersion: number;
  /** The executor that owns it, or owned it last. */
  readonly executorId: string | null;
  readonly attempts: number;
  readonly maxAttempts: number;
  readonly appVersion: string;
  /** Number of the first step of the run that is under way; more than 0 after `continueAsNew`. */
  readonly firstStep: number;
  readonly wakeAt: Date | null;
  readonly timeoutMs: number | null;
  readonly deadline: Date | null;
  readonly parent: {
    readonly workflowId: string;
    readonly seq: number;
    readonly onParentCancel: 'cancel' | 'abandon';
  } | null;
  readonly forkedFrom: string | null;
  readonly attributes: Readonly<Record<string, unknown>> | null;
  /** Its place in a queue. */
  readonly queue: {
    readonly name: string;
    readonly priority: number;
    readonly key: string | null;
    /** Held until the workflow has ended. */
    readonly deduplicationId: string | null;
  } | null;
  /** Of a run of a schedule: the tick it runs for, and why it came to be. */
  readonly schedule: {
    readonly name: string;
    readonly scheduledAt: Date;
    readonly cause: 'tick' | 'trigger' | 'backfill' | 'fork';
  } | null;
  /** Why a person has to look. */
  readonly attention: { readonly code: string; readonly detail: string | null } | null;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  readonly startedAt: Date | null;
  readonly completedAt: Date | null;
  /** Only with `payload`: the arguments. */
  readonly input?: StoredValue;
  /** Only with `payload`, when it has ended: the result, */
  readonly output?: StoredValue;
  /** or the error. */
  readonly error?: StoredValue;
}

export interface StepDetails {
  readonly seq: number;
  readonly name: string;
  /**
   * `step`, `value` (now, random, uuid), `sleep`, `workflow` (a child's outcome), `start` (a child), `outcome`, `patch`, `rollback` (the
   * marker of one), `compensation`.
   */
  readonly kind: string;
  /** False: it has no result yet. A `step` whose outcome is unknown is one of these, unless an execution is just running it. */
  readonly complete: boolean;
  /** 0 of a complete step: it was skipped by hand. Of one that is not: the runs that ended without anybody knowing. */
  readonly attempts: number;
  readonly childId: string | null;
  /** When a sleep ends. */
  readonly wakeAt: Date | null;
  readonly recordVersion: number;
  /** The ownership that recorded it; 0: copied by a fork. */
  readonly epoch: number;
  readonly startedAt: Date;
  readonly completedAt: Date | null;
  /** Only with `payload`, when it is complete: the result, */
  readonly output?: StoredValue;
  /** or the error. */
  readonly error?: StoredValue;
  /** Only with `payload`: the errors of the attempts before the last one. */
  readonly attemptErrors?: readonly StoredValue[];
}

/** The rollback of a workflow. */
export interface RollbackDetails {
  readonly cause: 'failed' | 'timed-out' | 'cancelled';
  /** Number of its marker: the steps before it are those of the workflow. */
  readonly seq: number;
  readonly beganAt: Date;
  /** Only with `payload`: the error that the workflow ends with. */
  readonly error?: StoredValue;
  /** In the order in which they run. Empty until an execution has found out what there is to undo, and when that is nothing. */
  readonly compensations: readonly CompensationDetails[];
}

export interface CompensationDetails {
  readonly seq: number;
  /** Name of the step that it undoes, or the one given to `onRollback`. */
  readonly name: string;
  /** Number of the step that it undoes; null: it was registered by `onRollback`. */
  readonly undoes: number | null;
  /**
   * `pending`: not come to yet, or under way. `failed`: for good. `done`. `not-needed`: what it was to undo has not happened. `by-hand`:
   * recorded by `skipCompensation`.
   */
  readonly state: 'pending' | 'failed' | 'done' | 'not-needed' | 'by-hand';
  /** Of the execution that completed it. */
  readonly attempts: number;
  readonly completedAt: Date | null;
  /** Only with `payload`, when it failed. */
  readonly error?: StoredValue;
}

export interface OwnershipDetails {
  readonly epoch: number;
  readonly executorId: string;
  readonly incarnation: number;
  /** `started`, `claimed`, `recovered`, or `resumed` (by a resume or rewind). */
  readonly reason: string;
  readonly ownedAt: Date;
  /** Null: it lasts. */
  readonly endedAt: Date | null;
  /** `completed`, `released`, `blocked`, `taken over`, `continued`, or the control operation that ended it. */
  readonly endedHow: string | null;
}

export interface AuditDetails {
  /** The same for all that one call did. */
  readonly auditId: string;
  readonly verb: string;
  readonly actor: string;
  readonly reason: string | null;
  readonly statusBefore: WorkflowStatus | null;
  readonly statusAfter: WorkflowStatus | null;
  readonly detail: Readonly<Record<string, unknown>> | null;
  readonly actedAt: Date;
}
