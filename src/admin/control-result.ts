import {
  StepNotFoundError,
  StepRecordedError,
  WorkflowExistsError,
  WorkflowStateError,
} from '../errors/admin-errors.js';
import type { HoldfastError } from '../errors/holdfast-error.js';
import { notFound } from '../engine/not-found.js';
import type { ControlAnswer, ControlRefusal } from '../store/admin-store.js';
import type { ControlResult } from './admin-answers.js';

export type ControlVerb =
  | 'cancel'
  | 'resume'
  | 'prioritize'
  | 'setAppVersion'
  | 'rewind'
  | 'repairStep'
  | 'skipCompensation'
  | 'fork'
  | 'delete';

/** What the caller is told of a store's answer. @throws what the verb documents */
export function resultOf(verb: ControlVerb, workflowId: string, answer: ControlAnswer): ControlResult {
  switch (answer.kind) {
    case 'done': {
      const { statusBefore, statusAfter } = answer;
      if (statusBefore === null) throw new TypeError(`${verb} changed a workflow that had no status.`);
      return { workflowId, result: 'done', statusBefore, statusAfter };
    }
    case 'unchanged':
      return { workflowId, result: 'unchanged', statusBefore: answer.status, statusAfter: answer.status };
    case 'missing':
      throw notFound(workflowId);
    case 'refused':
      throw refusalError(verb, workflowId, answer.status, answer.refusal);
    case 'failed':
      throw answer.error;
  }
}

function refusalError(verb: ControlVerb, workflowId: string, status: string, refusal: ControlRefusal): HoldfastError {
  switch (refusal.kind) {
    case 'step':
      return new StepNotFoundError(
        `Workflow "${workflowId}" has no such step: choose a number from ${String(refusal.first)} to ${String(refusal.last)}.`,
      );
    case 'unrecorded':
      return new StepNotFoundError(`Workflow "${workflowId}" has recorded no step of that number: see admin.steps.`);
    case 'kind':
      return new StepNotFoundError(
        `What workflow "${workflowId}" has recorded under that number is no step (${refusal.found}), and cannot be repaired.`,
      );
    case 'recorded':
      return new StepRecordedError(
        `That step of workflow "${workflowId}" has a result, which never changes. Rewind or fork the workflow to run it again.`,
      );
    case 'overtaken':
      return new StepRecordedError(
        `Workflow "${workflowId}" has gone on from the error of that step (with number ${refusal.by}). Rewind or fork it to run the step again.`,
      );
    case 'rollback':
      return new WorkflowStateError(
        `Workflow "${workflowId}" is being rolled back, which runs no step again. Record whether this one happened, or undo it by hand ` +
          'and record that with admin.skipCompensation.',
        { status, verb },
      );
    case 'owned':
      return new WorkflowStateError(
        `A live execution owns workflow "${workflowId}". Wait until it is blocked or has ended, or cancel it first.`,
        { status, verb },
      );
    case 'compensation':
      return new StepNotFoundError(
        `Workflow "${workflowId}" has no such compensation that is still to be done: admin.rollback lists them.`,
      );
    case 'exists':
      return new WorkflowExistsError('The ID that the fork is to have is taken: choose another one.');
    case 'awaited':
      return new WorkflowStateError(
        `Workflow "${refusal.by}" has not ended and may still ask for the outcome of "${workflowId}". ` +
          'Delete it later, or with force.',
        { status, verb },
      );
    case 'status':
      return new WorkflowStateError(
        `Workflow "${workflowId}" is ${status}: cannot ${verb}. ` +
          (verb === 'prioritize' || verb === 'setAppVersion'
            ? 'It waits for nothing any more.'
            : verb === 'skipCompensation'
              ? 'Only a rollback that is blocked, or waits to be run, can be helped by hand.'
              : verb === 'delete'
                ? 'Cancel it first, or delete it with force.'
                : 'Rewind it, or fork it, to run it again.'),
        { status, verb },
      );
  }
}
