import { HoldfastError } from './holdfast-error.js';

/** A workflow or step cannot be registered as it is: no name, a name that is taken, not a method. */
export class RegistrationError extends HoldfastError {
  override readonly code = 'REGISTRATION_INVALID';
  override readonly name = 'RegistrationError';
}

/** The function is not a workflow that this Holdfast was launched with. */
export class WorkflowNotRegisteredError extends HoldfastError {
  override readonly code = 'WORKFLOW_NOT_REGISTERED';
  override readonly name = 'WorkflowNotRegisteredError';
}

/** A workflow was called directly while no Holdfast, or more than one, is launched with it. */
export class NotLaunchedError extends HoldfastError {
  override readonly code = 'NOT_LAUNCHED';
  override readonly name = 'NotLaunchedError';
}

/** This Holdfast has been closed, or is closing. */
export class HoldfastClosedError extends HoldfastError {
  override readonly code = 'CLOSED';
  override readonly name = 'HoldfastClosedError';
}

/** A function that only works inside a workflow, or inside a step, was called elsewhere; or a transaction's client was used after its body. */
export class OutsideWorkflowError extends HoldfastError {
  override readonly code = 'OUTSIDE_WORKFLOW';
  override readonly name = 'OutsideWorkflowError';
}

/** Another version of this package is loaded in the process: workflows would run outside each other's sight. */
export class DuplicateLibraryError extends HoldfastError {
  override readonly code = 'DUPLICATE_LIBRARY';
  override readonly name = 'DuplicateLibraryError';
}

/** The database, or a data source, could not be reached within the time given to `launch`. */
export class LaunchTimeoutError extends HoldfastError {
  override readonly code = 'LAUNCH_TIMEOUT';
  override readonly name = 'LaunchTimeoutError';
}
