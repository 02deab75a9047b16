import * as errors from './errors/index.js';
import type { ErrorClass } from './values/index.js';

/** Every error class of Holdfast's own, so that a stored one comes back as what it was. */
export const BUILT_IN_ERRORS: readonly ErrorClass[] = Object.values(errors);
