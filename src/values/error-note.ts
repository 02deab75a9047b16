/**
 * What an error's stored form says beyond what the rebuilt error shows. It travels on the error under a registered
 * symbol, not enumerable, so that encoding the rebuilt error gives the same text again.
 */
export interface ErrorNote {
  /** Name of the error's class where it was thrown. */
  readonly className: string;
  /** The error's `name` where it was thrown. */
  readonly name: string;
  /** The `name` that the rebuilt error was given. */
  readonly shownName: string;
  /** Names of the properties that could not be stored; `errors[2]`-like names do not occur. */
  readonly dropped: readonly string[];
}

const NOTE = Symbol.for('holdfast.errorNote');

export function attachErrorNote(error: Error, note: ErrorNote): void {
  Object.defineProperty(error, NOTE, { value: note, writable: true, configurable: true, enumerable: false });
}

/** The note of an error, if it has a well-formed one: the symbol is registered, so anyone could have put anything there. */
export function errorNoteOf(error: object): ErrorNote | undefined {
  const note = (error as { readonly [NOTE]?: unknown })[NOTE];
  if (typeof note !== 'object' || note === null) return undefined;
  const { className, name, shownName, dropped } = note as Record<keyof ErrorNote, unknown>;
  if (typeof className !== 'string' || typeof name !== 'string' || typeof shownName !== 'string') return undefined;
  if (!Array.isArray(dropped) || !dropped.every((entry) => typeof entry === 'string')) return undefined;
  return { className, name, shownName, dropped };
}

/** Names of the properties that were left out when this error was stored, because they could not be stored or were too large. */
export function droppedPropertiesOf(error: Error): readonly string[] {
  return errorNoteOf(error)?.dropped ?? [];
}
