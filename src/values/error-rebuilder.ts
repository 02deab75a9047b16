import { classNameOf } from './describe-value.js';
import { attachErrorNote } from './error-note.js';
import type { ErrorRegistry } from './error-registry.js';

/** The parts of a stored error that are there before anything it refers to is read. */
export interface StoredErrorHead {
  readonly className: string;
  readonly name: string;
  readonly message: string;
  readonly stack: string | undefined;
  readonly dropped: readonly string[];
}

/** The classes that need no registration. They are constructed, so that they have the internal slots of real ones. */
const BUILT_IN_ERRORS = new Map<string, (message: string, name: string) => Error>([
  ['Error', (message: string) => new Error(message)],
  ['EvalError', (message: string) => new EvalError(message)],
  ['RangeError', (message: string) => new RangeError(message)],
  ['ReferenceError', (message: string) => new ReferenceError(message)],
  ['SyntaxError', (message: string) => new SyntaxError(message)],
  ['TypeError', (message: string) => new TypeError(message)],
  ['URIError', (message: string) => new URIError(message)],
  ['AggregateError', (message: string) => new AggregateError([], message)],
  ['DOMException', (message: string, name: string) => new DOMException(message, name)],
]);

/** Rebuilds an error without what it refers to, which may refer back to it. */
export function rebuildError(head: StoredErrorHead, registry: ErrorRegistry | undefined): Error {
  const known = withoutStack(() => rebuildKnown(head, registry));
  const error = known ?? withoutStack(() => rebuildUnknown(head));
  // An inherited `Error` says less than the name of the class that this process does not have.
  const shownName = known === undefined && head.name === 'Error' ? head.className : head.name;
  if (readName(error) !== shownName) defineHidden(error, 'name', shownName);
  defineHidden(error, 'stack', head.stack);
  if (head.dropped.length > 0 || shownName !== head.name || classNameOf(error) !== head.className) {
    attachErrorNote(error, { className: head.className, name: head.name, shownName, dropped: head.dropped });
  }
  return error;
}

/**
 * Creates an error without capturing where: the stored stack takes its place at once, and V8 would format the captured
 * one only to overwrite it (40 µs an error, measured, against 2 µs).
 */
function withoutStack<T>(create: () => T): T {
  const limit = Error.stackTraceLimit;
  // Reflect.set, since a hardened runtime may have made it read-only.
  Reflect.set(Error, 'stackTraceLimit', 0);
  try {
    return create();
  } finally {
    Reflect.set(Error, 'stackTraceLimit', limit);
  }
}

/** Sets a property in the way of the language's own error properties: there, but not enumerable. */
export function defineHidden(error: Error, key: 'name' | 'stack' | 'cause' | 'errors', value: unknown): void {
  Object.defineProperty(error, key, { value, writable: true, configurable: true, enumerable: false });
}

/** The name may be a getter of a user's class that needs what its constructor would have set up. */
function readName(error: Error): unknown {
  try {
    return error.name;
  } catch {
    return undefined;
  }
}

function rebuildKnown(head: StoredErrorHead, registry: ErrorRegistry | undefined): Error | undefined {
  const errorClass = registry?.find(head.className) ?? registry?.find(head.name);
  if (errorClass !== undefined) {
    // A real error with another prototype rather than Object.create, so that the platform recognises it as an error.
    return Object.setPrototypeOf(new Error(head.message), errorClass.prototype as object) as Error;
  }
  return BUILT_IN_ERRORS.get(head.className)?.(head.message, head.name);
}

/** An unregistered subclass that is named like a built-in one (`TypeError`) comes back as that. */
function rebuildUnknown(head: StoredErrorHead): Error {
  const build = head.name === 'DOMException' ? undefined : BUILT_IN_ERRORS.get(head.name);
  return build?.(head.message, head.name) ?? new Error(head.message);
}
