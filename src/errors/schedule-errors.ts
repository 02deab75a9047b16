import { HoldfastError } from './holdfast-error.js';

/** There is no schedule of this name. Nothing was written. */
export class ScheduleNotFoundError extends HoldfastError {
  override readonly code = 'SCHEDULE_NOT_FOUND';
  override readonly name = 'ScheduleNotFoundError';
}

/** A cron expression or time zone cannot be understood, or names no time that ever comes. Nothing was written. */
export class InvalidCronError extends HoldfastError {
  override readonly code = 'CRON_INVALID';
  override readonly name = 'InvalidCronError';
}
