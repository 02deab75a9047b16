import { Buffer } from 'node:buffer';
import { types } from 'node:util';

import { PayloadTooLargeError, ValueNotSerializableError } from '../errors/value-errors.js';
import { describeValue } from './describe-value.js';
import { writeDescription, writeErrorObject, type ErrorContext, type ErrorDetail } from './error-writer.js';
import { MAX_DEPTH, MAX_ERROR_DEPTH } from './limits.js';
import { bytesClassOf, kindOf } from './object-kind.js';
import { isPlainNumber } from './plain-json.js';
import { formatPath, type PathSegment } from './value-path.js';

/**
 * Writes any supported value as text, in one pass: the general way, for what `JSON.stringify` cannot say. A writer serves
 * one value. {@link needsEnvelope} tells afterwards whether the text uses anything beyond plain JSON.
 *
 * The text is written directly rather than through a tree for JSON.stringify, so that no `toJSON` and no polluted
 * prototype has a say, and so that a value over the limit is noticed before it is complete in memory.
 */
export class ValueWriter implements ErrorContext {
  readonly #limitBytes: number;
  readonly #errorDetail: ErrorDetail;
  /** The objects begun so far, with their number in reading order: what a `$ref` points to. */
  readonly #numbers = new Map<object, number>();
  readonly #objects: object[] = [];
  /** Where the writer is. Not unwound when something throws, so that the place of the failure can be told. */
  readonly #path: PathSegment[] = [];
  #errorDepth = 0;
  #needsEnvelope = false;
  #refusal: unknown;

  constructor(limitBytes: number, errorDetail: ErrorDetail = 'full') {
    this.#limitBytes = limitBytes;
    this.#errorDetail = errorDetail;
  }

  get needsEnvelope(): boolean {
    return this.#needsEnvelope;
  }

  /** Writes a value; whatever goes wrong is thrown as one of this layer's errors, with the path of the culprit. */
  write(value: unknown): string {
    try {
      return this.#write(value);
    } catch (error) {
      throw this.#asRefusal(error);
    }
  }

  /** Writes what was thrown: what cannot be stored as it is becomes an error that describes it. Too large still throws. */
  #writeThrown(value: unknown): string {
    return this.#attempt(
      () => this.#write(value),
      (error) => {
        if (error instanceof PayloadTooLargeError) throw error;
        this.#begin(typeof value === 'object' && value !== null ? value : {});
        return this.#tag('error', writeDescription(value));
      },
    );
  }

  #write(value: unknown): string {
    switch (typeof value) {
      case 'string':
        return this.#writeString(value);
      case 'number':
        if (isPlainNumber(value)) return String(value);
        return this.#tag('number', Object.is(value, -0) ? '"-0"' : `"${value}"`);
      case 'boolean':
        return value ? 'true' : 'false';
      case 'undefined':
        return this.#tag('undefined', 'true');
      case 'bigint':
        return this.#tag('bigint', `"${value}"`);
      case 'object':
        return value === null ? 'null' : this.#writeObject(value);
      default:
        throw this.#refuse(value);
    }
  }

  #writeString(value: string): string {
    this.checkLength(value.length);
    return JSON.stringify(value);
  }

  #writeObject(value: object): string {
    const number = this.#numbers.get(value);
    if (number !== undefined) return this.#tag('ref', String(number));
    if (this.#path.length >= MAX_DEPTH) throw this.#refuseDepth();
    this.#begin(value);
    const text = this.#writeNewObject(value);
    this.checkLength(text.length);
    return text;
  }

  #writeNewObject(value: object): string {
    switch (kindOf(value)) {
      case 'record':
        return this.#writeProperties(value, Object.keys(value));
      case 'null-prototype':
        return this.#tag('nullproto', this.#writeProperties(value, Object.keys(value)));
      case 'array':
        return this.#writeArray(value as unknown[]);
      case 'date':
        return this.#tag('date', writeDate(value as Date));
      case 'regexp':
        return this.#tag('regexp', JSON.stringify([(value as RegExp).source, (value as RegExp).flags]));
      case 'url':
        return this.#tag('url', JSON.stringify(URL.prototype.toString.call(value)));
      case 'boxed':
        return this.#tag('boxed', this.#write(unbox(value)));
      case 'map':
        return this.#tag('map', this.#writeMap(value as Map<unknown, unknown>));
      case 'set':
        return this.#tag('set', this.#writeSet(value as Set<unknown>));
      case 'bytes':
        return this.#tag('bytes', this.#writeBytes(value as ArrayBufferView | ArrayBuffer));
      case 'error':
        return this.#tag('error', this.#writeError(value));
      case 'unsupported':
        throw this.#refuse(value);
    }
  }

  #writeProperties(value: object, keys: readonly string[]): string {
    let text = '{';
    for (const key of keys) {
      this.#path.push(key);
      const property = this.#write((value as Record<string, unknown>)[key]);
      this.#path.pop();
      text += `${text === '{' ? '' : ','}${this.#writeKey(key)}:${property}`;
      this.checkLength(text.length);
    }
    return `${text}}`;
  }

  #writeKey(key: string): string {
    if (!key.startsWith('$')) return JSON.stringify(key);
    this.#needsEnvelope = true;
    return JSON.stringify(`$${key}`);
  }

  /** Reads the keys rather than counting up to the length, which in a sparse array can be four thousand millions. */
  #writeArray(array: readonly unknown[]): string {
    const keys = Object.keys(array);
    let text = '[';
    let next = 0;
    let position = 0;
    for (; position < keys.length; position++) {
      const index = Number(keys[position]);
      if (!isIndex(index, keys[position])) break;
      if (index > next) text += `${next === 0 ? '' : ','}${this.#tag('holes', String(index - next))}`;
      this.#path.push(index);
      text += `${index === 0 ? '' : ','}${this.#write(array[index])}`;
      this.#path.pop();
      next = index + 1;
      this.checkLength(text.length);
    }
    if (array.length > next) text += `${next === 0 ? '' : ','}${this.#tag('holes', String(array.length - next))}`;
    text += ']';
    if (position === keys.length) return text;
    return this.#tag('array', `{"items":${text},"props":${this.#writeProperties(array, keys.slice(position))}}`);
  }

  #writeMap(map: ReadonlyMap<unknown, unknown>): string {
    let text = '[';
    let index = 0;
    // The iterator of Map itself: an overriding property of the object has no say.
    for (const [key, value] of Map.prototype.entries.call(map) as MapIterator<[unknown, unknown]>) {
      text += `${index === 0 ? '' : ','}[${this.#writePart(`key ${index}`, key)},${this.#writePart(`value ${index}`, value)}]`;
      index++;
      this.checkLength(text.length);
    }
    return `${text}]`;
  }

  #writeSet(set: ReadonlySet<unknown>): string {
    let text = '[';
    let index = 0;
    for (const value of Set.prototype.values.call(set) as SetIterator<unknown>) {
      text += `${index === 0 ? '' : ','}${this.#writePart(`value ${index}`, value)}`;
      index++;
      this.checkLength(text.length);
    }
    return `${text}]`;
  }

  /** Only the bytes that a view shows are stored: the rest of its buffer may be a pool that holds other people's data. */
  #writeBytes(value: ArrayBufferView | ArrayBuffer): string {
    this.checkLength((value.byteLength / 3) * 4);
    const bytes = ArrayBuffer.isView(value)
      ? Buffer.from(value.buffer, value.byteOffset, value.byteLength)
      : Buffer.from(value);
    return `["${bytesClassOf(value)}","${bytes.toString('base64')}"]`;
  }

  #writePart(part: string, value: unknown): string {
    this.#path.push({ part });
    const text = this.#write(value);
    this.#path.pop();
    return text;
  }

  #writeError(error: object): string {
    if (this.#errorDepth >= MAX_ERROR_DEPTH) throw this.#refuseDepth();
    this.#errorDepth++;
    const text = writeErrorObject(error, this.#errorDetail, this);
    this.#errorDepth--;
    return text;
  }

  writeThrownAt(segment: string | number, value: unknown): string | undefined {
    // Room for one more error must be left, which describes the value where it cannot be stored.
    if (this.#errorDepth >= MAX_ERROR_DEPTH || this.#path.length + 1 >= MAX_DEPTH) return undefined;
    this.#path.push(segment);
    const text = this.#writeThrown(value);
    this.#path.pop();
    return text;
  }

  writeProperty(owner: object, key: string, maxLength: number): string | undefined {
    return this.#attempt(
      () => {
        this.#path.push(key);
        const property = `${this.#writeKey(key)}:${this.#write((owner as Record<string, unknown>)[key])}`;
        this.#path.pop();
        if (property.length > maxLength) throw this.#refuse(owner);
        return property;
      },
      () => undefined,
    );
  }

  /** Does something that may fail half-way; if it does, everything it left behind is undone before the fallback runs. */
  #attempt<T>(write: () => string, fallback: (error: unknown) => T): string | T {
    const objectsBefore = this.#objects.length;
    const depthBefore = this.#path.length;
    const errorDepthBefore = this.#errorDepth;
    try {
      return write();
    } catch (error) {
      const refusal = this.#asRefusal(error);
      for (const object of this.#objects.splice(objectsBefore)) this.#numbers.delete(object);
      this.#path.length = depthBefore;
      this.#errorDepth = errorDepthBefore;
      return fallback(refusal);
    }
  }

  #begin(object: object): void {
    this.#objects.push(object);
    this.#numbers.set(object, this.#objects.length - 1);
  }

  #tag(name: string, content: string): string {
    this.#needsEnvelope = true;
    return `{"$${name}":${content}}`;
  }

  /** UTF-16 code units are never more than bytes of UTF-8, so this refuses early but never wrongly. */
  checkLength(length: number): void {
    if (length <= this.#limitBytes) return;
    this.#refusal = new PayloadTooLargeError({ actualBytes: Math.ceil(length), limitBytes: this.#limitBytes });
    throw this.#refusal;
  }

  #refuse(value: unknown): unknown {
    const path = formatPath(this.#path);
    const message = `The value at ${path} cannot be stored: it is ${describeValue(value)}.`;
    this.#refusal = new ValueNotSerializableError(message, { path });
    return this.#refusal;
  }

  #refuseDepth(): unknown {
    const path = formatPath(this.#path);
    const message = `The value at ${path} cannot be stored: it is nested more than ${MAX_DEPTH} levels deep.`;
    this.#refusal = new ValueNotSerializableError(message, { path });
    return this.#refusal;
  }

  /** Compares by identity, since looking at the class of what a hostile getter threw could throw again. */
  #asRefusal(error: unknown): unknown {
    if (this.#refusal !== undefined && error === this.#refusal) return error;
    const path = formatPath(this.#path);
    const message = `The value at ${path} cannot be stored: reading it threw an error.`;
    this.#refusal = new ValueNotSerializableError(message, { path }, { cause: error });
    return this.#refusal;
  }
}

function writeDate(date: Date): string {
  const time = Date.prototype.getTime.call(date);
  return Number.isNaN(time) ? 'null' : `"${new Date(time).toISOString()}"`;
}

/** The primitive itself, whatever the object's own `valueOf` would say. */
function unbox(value: object): unknown {
  if (types.isNumberObject(value)) return Number.prototype.valueOf.call(value);
  if (types.isStringObject(value)) return String.prototype.valueOf.call(value);
  if (types.isBooleanObject(value)) return Boolean.prototype.valueOf.call(value);
  return BigInt.prototype.valueOf.call(value);
}

function isIndex(index: number, key: string | undefined): boolean {
  return Number.isInteger(index) && index >= 0 && index < 2 ** 32 - 1 && String(index) === key;
}
