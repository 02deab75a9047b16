import * as errors from './errors/index.js';
import type { ErrorRegistry } from './values/index.js';

type Entries = ConstructorParameters<typeof ErrorRegistry>[0];

/** Every error class of Holdfast's own, so that a stored one comes back as what it was. By name, since a bundler may rename classes. */
export const BUILT_IN_ERRORS = Object.entries(errors) satisfies Entries;
