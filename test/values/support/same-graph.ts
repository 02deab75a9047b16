import { expect } from 'vitest';

/**
 * Fails unless two values are the same graph: equal primitives (NaN, -0), equal classes and contents, the same keys in the
 * same order, the same holes, and the same objects shared in the same places.
 */
export function expectSameGraph(actual: unknown, expected: unknown): void {
  expect(findDifference(actual, expected, '$', new Map())).toBeUndefined();
}

function findDifference(
  actual: unknown,
  expected: unknown,
  path: string,
  pairs: Map<object, object>,
): string | undefined {
  if (!isObject(actual) || !isObject(expected)) {
    return Object.is(actual, expected) ? undefined : `${path}: ${String(actual)} instead of ${String(expected)}`;
  }
  const known = pairs.get(expected);
  if (known !== undefined) return known === actual ? undefined : `${path}: another object than the first time`;
  if ([...pairs.values()].includes(actual)) return `${path}: one object for two`;
  pairs.set(expected, actual);
  if (Object.getPrototypeOf(actual) !== Object.getPrototypeOf(expected)) return `${path}: another prototype`;
  const contents = [contentOf(actual), contentOf(expected)] as const;
  if (contents[0].length !== contents[1].length) return `${path}: another number of elements`;
  for (const [index, element] of contents[1].entries()) {
    const difference = findDifference(contents[0][index], element, `${path}<${index}>`, pairs);
    if (difference !== undefined) return difference;
  }
  return undefined;
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

/** Everything that makes up an object, as a flat list. */
function contentOf(value: object): unknown[] {
  if (value instanceof Date) return [value.getTime()];
  if (value instanceof RegExp) return [value.source, value.flags];
  if (value instanceof URL) return [value.href];
  if (value instanceof Map) return [...value.entries()].flat();
  if (value instanceof Set) return [...(value as Set<unknown>)];
  if (value instanceof ArrayBuffer) return [...new Uint8Array(value)];
  if (ArrayBuffer.isView(value)) return [...new Uint8Array(value.buffer, value.byteOffset, value.byteLength)];
  const properties = Object.keys(value).flatMap((key) => [key, (value as Record<string, unknown>)[key]]);
  if (value instanceof Error) return [value.name, value.message, value.stack, value.cause, ...properties];
  if (value instanceof Number || value instanceof String || value instanceof Boolean) return [value.valueOf()];
  return Array.isArray(value) ? [value.length, ...properties] : properties;
}
