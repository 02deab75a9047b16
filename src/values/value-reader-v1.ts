import { Buffer } from 'node:buffer';

import { ValueDecodeError } from '../errors/value-errors.js';
import { defineHidden, rebuildError, type StoredErrorHead } from './error-rebuilder.js';
import type { ErrorRegistry } from './error-registry.js';
import { MAX_DEPTH } from './limits.js';

type Properties = Record<string, unknown>;
type TypedArrayClass = new (buffer: ArrayBuffer) => ArrayBufferView;

/** Stands for a run of missing elements; never leaves an array's reader. */
class Holes {
  constructor(readonly count: number) {}
}

const SPECIAL_NUMBERS: ReadonlyMap<unknown, number> = new Map([
  ['NaN', Number.NaN],
  ['Infinity', Number.POSITIVE_INFINITY],
  ['-Infinity', Number.NEGATIVE_INFINITY],
  ['-0', -0],
]);

const TYPED_ARRAYS: ReadonlyMap<string, TypedArrayClass> = new Map<string, TypedArrayClass>([
  ['DataView', DataView],
  ['Int8Array', Int8Array],
  ['Uint8Array', Uint8Array],
  ['Uint8ClampedArray', Uint8ClampedArray],
  ['Int16Array', Int16Array],
  ['Uint16Array', Uint16Array],
  ['Int32Array', Int32Array],
  ['Uint32Array', Uint32Array],
  ['Float32Array', Float32Array],
  ['Float64Array', Float64Array],
  ['BigInt64Array', BigInt64Array],
  ['BigUint64Array', BigUint64Array],
  ...float16Array(),
]);

/**
 * Reads the inside of an envelope of version 1 from its parsed JSON. A reader serves one value. Malformed input throws
 * {@link ValueDecodeError} or one of the platform's errors.
 */
export class ValueReaderV1 {
  readonly #registry: ErrorRegistry | undefined;
  /** The objects in reading order: what a `$ref` points to. Every object enters before its contents are read. */
  readonly #objects: object[] = [];
  #depth = 0;

  constructor(registry: ErrorRegistry | undefined) {
    this.#registry = registry;
  }

  read(node: unknown): unknown {
    if (typeof node !== 'object' || node === null) return node;
    // The writer stops at MAX_DEPTH containers; below the last one there can still be a primitive in a tag, or a boxed one.
    if (this.#depth > MAX_DEPTH + 1) throw malformed('it is nested too deeply');
    this.#depth++;
    const value = Array.isArray(node)
      ? this.#readArray(node, this.#begin<unknown[]>([]))
      : this.#readNode(node as Properties);
    this.#depth--;
    return value;
  }

  #readNode(node: Properties): unknown {
    const keys = Object.keys(node);
    const [first] = keys;
    if (keys.length === 1 && first !== undefined && first.startsWith('$') && !first.startsWith('$$')) {
      return this.#readTag(first, node[first]);
    }
    return this.#readProperties(node, keys, this.#begin({}));
  }

  #readTag(tag: string, content: unknown): unknown {
    switch (tag) {
      case '$undefined':
        return undefined;
      case '$number':
        return SPECIAL_NUMBERS.get(content) ?? fail('a number is not one of those it can be');
      case '$bigint':
        return BigInt(asString(content));
      case '$ref':
        return this.#objects[asCount(content)] ?? fail('a reference points to nothing');
      case '$holes':
        return new Holes(asCount(content));
      case '$date':
        return this.#begin(new Date(content === null ? Number.NaN : asString(content)));
      case '$regexp':
        return this.#begin(readRegExp(content));
      case '$url':
        return this.#begin(new URL(asString(content)));
      case '$bytes':
        return this.#begin(readBytes(content));
      default:
        return this.#readContainer(tag, content);
    }
  }

  #readContainer(tag: string, content: unknown): unknown {
    switch (tag) {
      case '$boxed':
        return this.#readBoxed(content);
      case '$map':
        return this.#readMap(content);
      case '$set':
        return this.#readSet(content);
      case '$nullproto': {
        const properties = asProperties(content);
        const target = this.#begin(Object.create(null) as Properties);
        return this.#readProperties(properties, Object.keys(properties), target);
      }
      case '$array': {
        const { items, props } = asProperties(content);
        const properties = asProperties(props);
        const array = this.#readArray(asArray(items), this.#begin<unknown[]>([]));
        return this.#readProperties(properties, Object.keys(properties), array as unknown as Properties);
      }
      case '$error':
        return this.#readError(asProperties(content));
      default:
        throw malformed('it has a tag that version 1 of the format does not have');
    }
  }

  #readArray(items: readonly unknown[], array: unknown[]): unknown[] {
    for (const item of items) {
      const value = this.read(item);
      if (value instanceof Holes) array.length += value.count;
      else array.push(value);
    }
    return array;
  }

  #readProperties(node: Properties, keys: readonly string[], target: Properties): Properties {
    for (const key of keys) {
      if (key.startsWith('$') && !key.startsWith('$$')) throw malformed('a tag is beside other properties');
      setOwn(target, key.startsWith('$') ? key.slice(1) : key, this.#readElement(node[key]));
    }
    return target;
  }

  #readBoxed(content: unknown): object {
    const primitive = this.read(content);
    if (primitive === null || primitive === undefined || typeof primitive === 'object') {
      throw malformed('a boxed value is not a primitive');
    }
    return this.#begin(Object(primitive) as object);
  }

  #readMap(content: unknown): Map<unknown, unknown> {
    const map = this.#begin(new Map<unknown, unknown>());
    for (const entry of asArray(content)) {
      const pair = asArray(entry);
      if (pair.length !== 2) throw malformed('an entry of a map is not a pair');
      map.set(this.#readElement(pair[0]), this.#readElement(pair[1]));
    }
    return map;
  }

  #readSet(content: unknown): Set<unknown> {
    const set = this.#begin(new Set<unknown>());
    for (const item of asArray(content)) set.add(this.#readElement(item));
    return set;
  }

  #readError(content: Properties): Error {
    // Without prototype, so that a polluted one cannot lend a part that is absent.
    const parts = Object.assign(Object.create(null) as Properties, content);
    const error = this.#begin(rebuildError(readErrorHead(parts), this.#registry));
    if ('cause' in parts) defineHidden(error, 'cause', this.#readElement(parts['cause']));
    if ('errors' in parts) {
      const errors: unknown[] = [];
      for (const item of asArray(parts['errors'])) errors.push(this.#readElement(item));
      defineHidden(error, 'errors', errors);
    }
    const properties = asProperties(parts['props'] ?? {});
    this.#readProperties(properties, Object.keys(properties), error as unknown as Properties);
    return error;
  }

  /** Reads something that is anywhere but directly inside an array, where missing elements cannot be. */
  #readElement(node: unknown): unknown {
    const value = this.read(node);
    if (value instanceof Holes) throw malformed('missing elements are outside an array');
    return value;
  }

  #begin<T extends object>(object: T): T {
    this.#objects.push(object);
    return object;
  }
}

/**
 * Creates a property whatever it is called: assignment would run a setter (`__proto__`), or fail on a name that a frozen
 * prototype has (`toString`).
 */
function setOwn(target: Properties, key: string, value: unknown): void {
  if (key in target)
    Object.defineProperty(target, key, { value, writable: true, configurable: true, enumerable: true });
  else target[key] = value;
}

function readErrorHead(parts: Properties): StoredErrorHead {
  const name = asString(parts['name']);
  return {
    name,
    className: asString(parts['class'] ?? name),
    message: asString(parts['message']),
    stack: parts['stack'] === undefined ? undefined : asString(parts['stack']),
    dropped: asArray(parts['dropped'] ?? []).map(asString),
  };
}

function readRegExp(content: unknown): RegExp {
  const [source, flags] = asArray(content);
  return new RegExp(asString(source), asString(flags));
}

function readBytes(content: unknown): ArrayBuffer | ArrayBufferView {
  const [className, base64] = asArray(content);
  const bytes = Buffer.from(asString(base64), 'base64');
  if (className === 'Buffer') return bytes;
  // A copy with a buffer of its own: Node's Buffer may sit in a pool, at any offset.
  const { buffer } = new Uint8Array(bytes);
  if (className === 'ArrayBuffer') return buffer;
  const typedArray = TYPED_ARRAYS.get(asString(className));
  return typedArray === undefined
    ? fail('it has bytes of a class that this runtime does not have')
    : new typedArray(buffer);
}

/** Only newer runtimes have it. */
function float16Array(): [string, TypedArrayClass][] {
  const candidate = (globalThis as { readonly Float16Array?: TypedArrayClass }).Float16Array;
  return candidate === undefined ? [] : [['Float16Array', candidate]];
}

function asString(node: unknown): string {
  return typeof node === 'string' ? node : fail('text was expected in a place');
}

function asCount(node: unknown): number {
  return Number.isSafeInteger(node) && Number(node) >= 0 ? Number(node) : fail('a count was expected in a place');
}

function asArray(node: unknown): unknown[] {
  return Array.isArray(node) ? node : fail('a list was expected in a place');
}

function asProperties(node: unknown): Properties {
  return typeof node === 'object' && node !== null && !Array.isArray(node)
    ? (node as Properties)
    : fail('properties were expected in a place');
}

function malformed(reason: string): ValueDecodeError {
  return new ValueDecodeError(`The stored value is malformed: ${reason}.`);
}

function fail(reason: string): never {
  throw malformed(reason);
}
