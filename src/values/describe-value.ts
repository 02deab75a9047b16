import { types } from 'node:util';
import { MAX_NAME_LENGTH } from './limits.js';

/** Says what kind of thing a value is, for an error's message: never what it contains. Never throws. */
export function describeValue(value: unknown): string {
  try {
    if (typeof value === 'function') return 'a function';
    if (typeof value === 'symbol') return 'a symbol';
    if (typeof value === 'object' && value !== null) return describeObject(value);
    return value === null ? 'null' : `a value of type ${typeof value}`;
  } catch {
    return 'an object that cannot be inspected';
  }
}

function describeObject(value: object): string {
  const className = classNameOf(value);
  if (types.isPromise(value)) return 'a promise (await it first)';
  if (types.isWeakMap(value) || types.isWeakSet(value)) return `a ${className}`;
  if (types.isSharedArrayBuffer(value)) return 'a SharedArrayBuffer (copy it into an ArrayBuffer first)';
  const members = value as { readonly then?: unknown; readonly pipe?: unknown; readonly getReader?: unknown };
  if (typeof members.then === 'function') return `a thenable of class ${className} (await it first)`;
  if (typeof members.pipe === 'function' || typeof members.getReader === 'function') {
    return `a stream of class ${className} (read it first)`;
  }
  if (Array.isArray(value))
    return `an instance of class ${className}, a subclass of Array (copy it with Array.from first)`;
  if (className === 'Object') return 'an object';
  return `an instance of class ${className} (convert it to a plain object first)`;
}

/** Name of an object's class as its prototype tells it, cut to a bounded length; `Object` where there is none. */
export function classNameOf(value: object): string {
  const prototype = Object.getPrototypeOf(value) as { readonly constructor?: unknown } | null;
  const constructor: unknown = prototype?.constructor;
  if (typeof constructor !== 'function') return 'Object';
  const name: unknown = constructor.name;
  return typeof name === 'string' && name !== '' ? name.slice(0, MAX_NAME_LENGTH) : 'anonymous';
}
