import { CODEC_KEY, ENVELOPE_KEY } from './format.js';
import { MAX_DEPTH } from './limits.js';

/** Up to this many objects a linear scan is cheaper than a hash set; measured break-even is between 10 and 30. */
const LINEAR_SCAN_LIMIT = 16;

/** The objects met so far, to notice one that is referenced twice. */
class MetObjects {
  #few: object[] = [];
  #many: Set<object> | undefined;

  /** Adds an object; false if it was there already. */
  add(value: object): boolean {
    if (this.#many !== undefined) {
      const sizeBefore = this.#many.size;
      return this.#many.add(value).size !== sizeBefore;
    }
    const few = this.#few;
    if (few.includes(value)) return false;
    few.push(value);
    if (few.length > LINEAR_SCAN_LIMIT) this.#many = new Set(few);
    return true;
  }
}

/**
 * Whether `JSON.stringify` says everything about an object that a reader must know: then its output is the stored form.
 *
 * False negatives are harmless (the slower writer finds out), so the checks are the cheapest ones that never let a value
 * through wrongly. That is why `for…in` is right here: a property inherited from a polluted `Object.prototype` can only
 * lead to the slow way. Getters and proxies may answer differently later; what they answer then is what is stored.
 */
export function isPlainJson(root: object): boolean {
  return isPlainContainer(root, 1, new MetObjects());
}

function isPlainContainer(value: object, depth: number, met: MetObjects): boolean {
  if (depth > MAX_DEPTH || !met.add(value)) return false;
  // JSON.stringify would call it, wherever in the prototype chain it sits.
  if (typeof (value as { toJSON?: unknown }).toJSON === 'function') return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === Object.prototype) return isPlainRecord(value as Record<string, unknown>, depth, met);
  return prototype === Array.prototype && Array.isArray(value) && isPlainArray(value, depth, met);
}

function isPlainRecord(record: Record<string, unknown>, depth: number, met: MetObjects): boolean {
  for (const key in record) {
    if (depth === 1 && (key === ENVELOPE_KEY || key === CODEC_KEY)) return false;
    const value = record[key];
    if (typeof value === 'string' || value === null || typeof value === 'boolean') continue;
    if (typeof value === 'number' ? !isPlainNumber(value) : !isPlainChild(value, depth, met)) return false;
  }
  return true;
}

function isPlainArray(array: readonly unknown[], depth: number, met: MetObjects): boolean {
  for (const value of array) {
    if (typeof value === 'string' || value === null || typeof value === 'boolean') continue;
    if (typeof value === 'number' ? !isPlainNumber(value) : !isPlainChild(value, depth, met)) return false;
  }
  // Named properties, such as the `index` of a match, would be lost without a word. Nothing cheaper finds them.
  return Object.keys(array).length === array.length;
}

function isPlainChild(value: unknown, depth: number, met: MetObjects): boolean {
  return typeof value === 'object' && value !== null && isPlainContainer(value, depth + 1, met);
}

/** Whether JSON holds a number exactly: not NaN, not infinite, not negative zero. */
export function isPlainNumber(value: number): boolean {
  return value - value === 0 && !Object.is(value, -0);
}
