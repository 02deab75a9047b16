import { Buffer } from 'node:buffer';
import { types } from 'node:util';

/** What an object is to the codec; `unsupported` is everything that could not be given back as it was. */
export type ObjectKind =
  | 'record'
  | 'null-prototype'
  | 'array'
  | 'date'
  | 'regexp'
  | 'map'
  | 'set'
  | 'bytes'
  | 'url'
  | 'boxed'
  | 'error'
  | 'unsupported';

/**
 * Classifies an object by its prototype and its internal slots, never by what its properties say. Objects of another
 * realm (a `vm` context, a test runner's sandbox) count as what they are there. May throw on a hostile proxy.
 */
export function kindOf(value: object): ObjectKind {
  const prototype = Object.getPrototypeOf(value) as object | null;
  if (prototype === Object.prototype) return 'record';
  if (prototype === null) return 'null-prototype';
  if (Array.isArray(value)) return isBuiltIn(prototype, 'Array', 1) ? 'array' : 'unsupported';
  if (types.isDate(value)) return isBuiltIn(prototype, 'Date', 1) ? 'date' : 'unsupported';
  if (types.isNativeError(value) || value instanceof Error) return 'error';
  if (types.isMap(value)) return isBuiltIn(prototype, 'Map', 1) ? 'map' : 'unsupported';
  if (types.isSet(value)) return isBuiltIn(prototype, 'Set', 1) ? 'set' : 'unsupported';
  if (ArrayBuffer.isView(value) || types.isArrayBuffer(value)) return bytesClassOf(value) ? 'bytes' : 'unsupported';
  if (types.isRegExp(value)) return isBuiltIn(prototype, 'RegExp', 1) ? 'regexp' : 'unsupported';
  if (types.isBoxedPrimitive(value)) return types.isSymbolObject(value) ? 'unsupported' : 'boxed';
  if (prototype === URL.prototype) return 'url';
  return isBuiltIn(prototype, 'Object', 0) ? 'record' : 'unsupported';
}

/** The name under which the bytes of a view or a buffer are stored; undefined for a subclass, which could not be rebuilt. */
export function bytesClassOf(value: ArrayBufferView | ArrayBuffer): string | undefined {
  const prototype = Object.getPrototypeOf(value) as object;
  if (types.isArrayBuffer(value)) return isBuiltIn(prototype, 'ArrayBuffer', 1) ? 'ArrayBuffer' : undefined;
  if (types.isDataView(value)) return isBuiltIn(prototype, 'DataView', 1) ? 'DataView' : undefined;
  if (prototype === Buffer.prototype) return 'Buffer';
  const name = (value as Uint8Array)[Symbol.toStringTag];
  return isBuiltIn(prototype, name, 2) ? name : undefined;
}

/**
 * Whether an object is the prototype of the built-in class of that name, in whatever realm: the right number of
 * prototypes above it (a subclass has one more) and a constructor of that name.
 */
function isBuiltIn(prototype: object, name: string, prototypesAbove: number): boolean {
  let last = prototype;
  for (let above = 0; above < prototypesAbove; above++) {
    const next = Object.getPrototypeOf(last) as object | null;
    if (next === null) return false;
    last = next;
  }
  if (Object.getPrototypeOf(last) !== null) return false;
  const constructor: unknown = Object.hasOwn(prototype, 'constructor') ? prototype.constructor : undefined;
  return typeof constructor === 'function' && constructor.name === name;
}
