import type { WorkflowStatus } from '../api/workflow-handle.js';

/** What every control operation can be given, for the audit. */
export interface ControlRequest {
  /** Why; at most 4,096 bytes. */
  readonly reason?: string;
  /** Who; 1 to 256 bytes. Default `unknown`. */
  readonly actor?: string;
}

export interface CancelRequest extends ControlRequest {
  /** `keep` lets children go on. Default `cancel`. */
  readonly children?: 'cancel' | 'keep';
  /** Undo first what was done. Default `false`. */
  readonly compensate?: boolean;
}

export interface SkipCompensationRequest extends ControlRequest {
  /** Number of the compensation, as `rollback` lists it. */
  readonly seq: number;
}

export interface PrioritizeRequest extends ControlRequest {
  /** Lower goes first; a whole number of 32 bits. */
  readonly priority: number;
}

export interface SetAppVersionRequest extends ControlRequest {
  /** At most 200 bytes. */
  readonly appVersion: string;
}

export interface RewindRequest extends ControlRequest {
  /** Number of the first step that is to run again: 0 (after `continueAsNew`: `firstStep`) is the first step; the number after the last one keeps them all. */
  readonly toStep: number;
}

/**
 * What a person knows of a step.
 *
 * - `happened`: its effect is there, and `result` is its result.
 * - `failed`: its effect is not there, and `error` is what the workflow's code gets.
 * - `didNotHappen`: its effect is not there. Its body is run again.
 * - `skip`: whatever became of it, the workflow goes on with `result` (default: undefined). The record shows 0 attempts.
 * - `retry`: whatever became of it, its body is run again, under the idempotency key that it had. Refused in a rollback.
 */
export type StepRepair =
  | { readonly happened: true; readonly result: unknown }
  | { readonly failed: true; readonly error: unknown }
  | { readonly didNotHappen: true }
  | { readonly skip: true; readonly result?: unknown }
  | { readonly retry: true };

export interface RepairRequest extends ControlRequest {
  /** Number of the step, as in `steps`. */
  readonly seq: number;
  readonly repair: StepRepair;
  /** Has the workflow go on at once. Default `false`: it stays as it is, so that more can be repaired. */
  readonly resume?: boolean;
}

export interface ForkRequest extends ControlRequest {
  /** Number of the first step that the new workflow runs itself. */
  readonly fromStep: number;
  /** ID of the new workflow; 1 to 512 bytes. Default: a UUIDv7. */
  readonly workflowId?: string;
  /** App version that the new workflow runs on. Default: that of the source. */
  readonly appVersion?: string;
}

export interface DeleteRequest extends ControlRequest {
  /** Deletes it whatever its status, and whoever waits for it. Default `false`. */
  readonly force?: boolean;
}

export interface PageRequest {
  /** Items on one page, 1 to 1,000. Default 100. */
  readonly limit?: number;
  /** `nextCursor` of the page before. */
  readonly cursor?: string;
}

/** Filters of `admin.list`; a workflow has to fit all that are given. Lists hold at most 100 entries. */
export interface WorkflowFilter extends PageRequest {
  readonly status?: WorkflowStatus | readonly WorkflowStatus[];
  readonly name?: string | readonly string[];
  /** How the ID begins, literally: `%` and `_` are characters like others. */
  readonly idPrefix?: string;
  /** The executor that owns it, or owned it last. */
  readonly executorId?: string;
  readonly parentId?: string;
  readonly appVersion?: string;
  /** The queue that it is in, or was. */
  readonly queue?: string;
  /** The key that it has in its queue. */
  readonly key?: string;
  /** Whether a person has to look at it. */
  readonly attention?: boolean;
  /** Not created before this. */
  readonly createdFrom?: Date;
  /** Created before this. */
  readonly createdBefore?: Date;
  /** Default `newest-first`. */
  readonly order?: 'newest-first' | 'oldest-first';
  /** Whether to read inputs and outcomes. Default `false`. */
  readonly payload?: boolean;
}

export interface AttentionFilter extends PageRequest {
  /** Only entries of these codes; docs/attention.md has all of them. At most 100. */
  readonly code?: string | readonly string[];
}

export interface OutboxEventFilter extends PageRequest {
  /** `pending`: to be delivered. Default: all. */
  readonly state?: 'pending' | 'dead';
  readonly topic?: string;
  /** Whether to read payloads and last errors. Default `false`. */
  readonly payload?: boolean;
}
