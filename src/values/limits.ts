/** Largest stored value unless configured otherwise, in bytes of UTF-8: 16 MiB. */
export const DEFAULT_MAX_VALUE_BYTES = 16 * 1024 * 1024;

/**
 * Deepest nesting of a value, counted in containers. Recursion of the writer and the readers stays far below Node's
 * default stack at this depth, even when it starts deep inside an application.
 */
export const MAX_DEPTH = 500;

/** Most errors inside one another, by `cause` or otherwise: what is deeper is described instead. */
export const MAX_ERROR_DEPTH = 50;

/** Largest stored error, in bytes of UTF-8: past it, an error keeps only its name, message and stack. */
export const MAX_ERROR_BYTES = 1024 * 1024;

/** Longest stored message of an error, in UTF-16 code units; the rest is cut off. */
export const MAX_ERROR_MESSAGE_LENGTH = 32 * 1024;

/** Longest stored stack of an error, in UTF-16 code units; the rest is cut off. */
export const MAX_ERROR_STACK_LENGTH = 32 * 1024;

/** Longest message and stack of an error that was reduced because the whole was too large, in UTF-16 code units. */
export const MAX_OUTLINE_TEXT_LENGTH = 2 * 1024;

/** Largest stored own property of an error, in UTF-16 code units of its text: a larger one is dropped and listed. */
export const MAX_ERROR_PROPERTY_LENGTH = 64 * 1024;

/** Most names in an error's list of dropped properties. */
export const MAX_DROPPED_PROPERTIES = 50;

/** Longest name (of a class, an error, a property) that is stored with an error or shown in a message, in code units. */
export const MAX_NAME_LENGTH = 200;

/** What bounds an encoded value. */
export interface ValueLimits {
  /** Largest encoded text, in bytes of UTF-8. */
  readonly maxBytes: number;
}

/** The limits that hold unless configured otherwise. */
export const DEFAULT_VALUE_LIMITS: ValueLimits = { maxBytes: DEFAULT_MAX_VALUE_BYTES };
