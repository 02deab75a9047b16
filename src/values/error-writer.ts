import { classNameOf, describeValue } from './describe-value.js';
import { errorNoteOf, type ErrorNote } from './error-note.js';
import {
  MAX_DROPPED_PROPERTIES,
  MAX_ERROR_MESSAGE_LENGTH,
  MAX_ERROR_PROPERTY_LENGTH,
  MAX_ERROR_STACK_LENGTH,
  MAX_NAME_LENGTH,
  MAX_OUTLINE_TEXT_LENGTH,
} from './limits.js';

/** How much of an error is written: `outline` is name, `code`, shortened message and shortened stack. */
export type ErrorDetail = 'full' | 'outline';

/** What the writer of an error needs from the writer of the whole value. */
export interface ErrorContext {
  /**
   * Writes a cause, or one error of several; what cannot be stored is described by an error instead. Undefined where the
   * nesting leaves no room.
   */
  writeThrownAt(segment: string | number, value: unknown): string | undefined;
  /** Writes an own property with its key; undefined if that fails, for whatever reason, or gives more than the length. */
  writeProperty(owner: object, key: string, maxLength: number): string | undefined;
  /** Throws if a text of this length cannot be stored any more. */
  checkLength(length: number): void;
}

/** Own properties that have a place of their own in the stored form. */
const NAMED_PARTS: ReadonlySet<string> = new Set(['name', 'message', 'stack', 'cause']);

/**
 * Writes an error: class, name, message, stack, cause, the errors of an AggregateError, and its own enumerable
 * properties, nothing else. A property that cannot be stored is left out and listed. Only the size limit can throw.
 */
export function writeErrorObject(error: object, detail: ErrorDetail, context: ErrorContext): string {
  const note = attempt(() => errorNoteOf(error));
  const dropped = new Set(note?.dropped.slice(0, MAX_DROPPED_PROPERTIES).map((key) => cut(key, MAX_NAME_LENGTH)));
  const isOutline = detail === 'outline';
  const messageLimit = isOutline ? MAX_OUTLINE_TEXT_LENGTH : MAX_ERROR_MESSAGE_LENGTH;
  const stackLimit = isOutline ? MAX_OUTLINE_TEXT_LENGTH : MAX_ERROR_STACK_LENGTH;
  let text = writeNames(error, note);
  text += `,"message":${JSON.stringify(cut(readText(error, 'message') ?? '', messageLimit))}`;
  const stack = readText(error, 'stack');
  if (stack !== undefined) text += `,"stack":${JSON.stringify(cut(stack, stackLimit))}`;
  if (isOutline) {
    const code = writeCode(error, context);
    for (const key of ['cause', 'errors', ...ownKeysOf(error)]) {
      if (key !== 'code' || code === '') drop(error, key, dropped);
    }
    text += code;
  } else {
    text += writeCause(error, dropped, context);
    text += writeErrors(error, dropped, context);
    text += writeOwnProperties(error, dropped, context);
  }
  if (dropped.size > 0) text += `,"dropped":${JSON.stringify([...dropped])}`;
  return `${text}}`;
}

/** The code is what programs go by, so that code which does would take another path at a replay. */
function writeCode(error: object, context: ErrorContext): string {
  const code = attempt(() => (error as { readonly code?: unknown }).code);
  if (typeof code !== 'string' && typeof code !== 'number') return '';
  const property = ownKeysOf(error).includes('code')
    ? context.writeProperty(error, 'code', MAX_NAME_LENGTH)
    : undefined;
  return property === undefined ? '' : `,"props":{${property}}`;
}

/** Writes an error that stands for a value that cannot be stored: its kind, and its `message` where it has one. */
export function writeDescription(value: unknown): string {
  const own = typeof value === 'object' && value !== null ? readText(value, 'message') : undefined;
  const message = `Something that cannot be stored was thrown: ${describeValue(value)}${own === undefined ? '' : `: ${own}`}`;
  return `{"name":"Error","message":${JSON.stringify(cut(message, MAX_OUTLINE_TEXT_LENGTH))}}`;
}

function writeNames(error: object, note: ErrorNote | undefined): string {
  const ownName = cut(readText(error, 'name') ?? 'Error', MAX_NAME_LENGTH);
  const name = note?.shownName === ownName ? note.name : ownName;
  const className = note?.className ?? attempt(() => classNameOf(error)) ?? 'Error';
  return `{"name":${JSON.stringify(name)}${className === name ? '' : `,"class":${JSON.stringify(className)}`}`;
}

function writeCause(error: object, dropped: Set<string>, context: ErrorContext): string {
  const cause = attempt(() => (Object.hasOwn(error, 'cause') ? { value: (error as Error).cause } : 'absent'));
  if (cause === 'absent') return '';
  const text = cause === undefined ? undefined : context.writeThrownAt('cause', cause.value);
  if (text !== undefined) return `,"cause":${text}`;
  drop(error, 'cause', dropped);
  return '';
}

function writeErrors(error: object, dropped: Set<string>, context: ErrorContext): string {
  const errors = attempt(() => readAggregatedErrors(error) ?? 'absent');
  if (errors === 'absent') return '';
  const text = errors === undefined ? undefined : writeElements(errors, context);
  if (text !== undefined) return `,"errors":[${text}]`;
  drop(error, 'errors', dropped);
  return '';
}

function writeElements(errors: readonly unknown[], context: ErrorContext): string | undefined {
  let text = '';
  for (const [index, element] of errors.entries()) {
    const elementText = context.writeThrownAt(index, element);
    if (elementText === undefined) return undefined;
    text += `${index === 0 ? '' : ','}${elementText}`;
    context.checkLength(text.length);
  }
  return text;
}

/** The errors of an AggregateError, which are an own property but not an enumerable one. */
function readAggregatedErrors(error: object): unknown[] | undefined {
  const descriptor = Object.getOwnPropertyDescriptor(error, 'errors');
  if (descriptor === undefined || descriptor.enumerable === true) return undefined;
  const errors = (error as AggregateError).errors as unknown;
  return Array.isArray(errors) ? [...(errors as unknown[])] : undefined;
}

function writeOwnProperties(error: object, dropped: Set<string>, context: ErrorContext): string {
  let text = '';
  for (const key of ownKeysOf(error)) {
    const property = context.writeProperty(error, key, MAX_ERROR_PROPERTY_LENGTH);
    if (property === undefined) {
      drop(error, key, dropped);
      continue;
    }
    text += `${text === '' ? '' : ','}${property}`;
    context.checkLength(text.length);
  }
  return text === '' ? '' : `,"props":{${text}}`;
}

function ownKeysOf(error: object): string[] {
  return (attempt(() => Object.keys(error)) ?? []).filter((key) => !NAMED_PARTS.has(key));
}

function drop(error: object, key: string, dropped: Set<string>): void {
  const isPresent = attempt(() => Object.hasOwn(error, key)) ?? true;
  if (isPresent && dropped.size < MAX_DROPPED_PROPERTIES) dropped.add(cut(key, MAX_NAME_LENGTH));
}

/** A property as text; undefined if it is not a string or cannot be read. */
function readText(value: object, key: 'name' | 'message' | 'stack'): string | undefined {
  const text = attempt(() => (value as Record<string, unknown>)[key]);
  return typeof text === 'string' ? text : undefined;
}

function cut(text: string, limit: number): string {
  if (text.length <= limit) return text;
  const notice = ` … [cut by Holdfast: ${text.length} characters]`;
  return text.slice(0, limit - notice.length) + notice;
}

function attempt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
