import { DuplicateLibraryError } from './errors/usage-errors.js';
import { VERSION } from './version.js';

const COPIES = Symbol.for('holdfast.copies');

/** Versions of this package that the process has loaded, whoever loaded them. */
function versions(): Set<string> {
  const holder = globalThis as { [COPIES]?: Set<string> | undefined };
  return (holder[COPIES] ??= new Set<string>());
}

versions().add(VERSION);

/**
 * Copies of one version share what they must and get along. Two versions might not: a workflow of one could call a step of
 * the other and not be recognised.
 * @throws DuplicateLibraryError
 */
export function assertOneVersion(): void {
  if (versions().size > 1) {
    throw new DuplicateLibraryError(
      `Several versions of holdfast are loaded in this process (${[...versions()].join(', ')}). ` +
        'Make the package manager install one: npm ls holdfast shows who wants which.',
    );
  }
}
