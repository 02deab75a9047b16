import { createHash } from 'node:crypto';
import { RegistrationError } from '../errors/usage-errors.js';
import { definitionOf } from './definitions.js';

/** A text, or a function or class whose source text is meant. */
export type SourceText = string | ((...args: never[]) => unknown) | (abstract new (...args: never[]) => unknown);

/** An app version that is to be made of the source of what is registered; see {@link sourceVersion}. */
export interface SourceVersion {
  readonly from: 'source';
  readonly also: readonly SourceText[];
}

/** One function that a version is made of. */
export interface NamedSource {
  readonly kind: 'workflow' | 'step' | 'transaction' | 'also';
  readonly name: string;
  readonly text: SourceText;
}

/** Hexadecimal digits of a version: 64 bits. */
const DIGITS = 16;

/**
 * For the option `appVersion`: a version that changes when, and only when, the source text of a registered workflow or of a step
 * of the same class changes. The same in all processes that run the same files, in whatever order they register.
 *
 * Not seen: functions that workflows call and steps of classes that are not registered. Give those that matter.
 *
 * @param also Functions and classes besides what is registered, and texts (the release's number, a lock file).
 * @example
 * await Holdfast.launch({ workflows: [Checkout], appVersion: sourceVersion(Payments, totalOf) });
 */
export function sourceVersion(...also: readonly SourceText[]): SourceVersion {
  return Object.freeze({ from: 'source', also: Object.freeze([...also]) });
}

export function isSourceVersion(candidate: unknown): candidate is SourceVersion {
  const { from, also } = (candidate ?? {}) as Partial<SourceVersion>;
  return from === 'source' && Array.isArray(also) && also.every(isSourceText);
}

/**
 * The version of these sources, in whatever order.
 * @throws RegistrationError for a function whose source cannot be read.
 */
export function versionOf(sources: readonly NamedSource[]): string {
  const pieces = sources.map(({ kind, name, text }) => JSON.stringify([kind, name, sourceOf(text, name)])).sort();
  const digest = createHash('sha256').update(pieces.join('\n')).digest('hex');
  return `source-${digest.slice(0, DIGITS)}`;
}

function isSourceText(candidate: unknown): boolean {
  return typeof candidate === 'string' || typeof candidate === 'function';
}

function sourceOf(text: SourceText, name: string): string {
  // A workflow or step is known by its wrapper, which is the same text for all.
  const source = typeof text === 'string' ? text : String(definitionOf(text)?.body ?? text);
  if (/\{\s*\[native code\]\s*\}$/.test(source)) {
    throw new RegistrationError(
      `The source of "${name}" cannot be read: it is a bound or built-in function. Give appVersion as a text, or the function itself.`,
    );
  }
  // A checkout on another system may end its lines otherwise.
  return source.replaceAll('\r\n', '\n');
}
