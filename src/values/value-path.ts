import { MAX_NAME_LENGTH } from './limits.js';

/** One step into a value: a property's key, an index, or a part of a map or a set that has no key of its own. */
export type PathSegment = string | number | { readonly part: string };

const IDENTIFIER = /^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u;
const MAX_SEGMENTS_AT_EACH_END = 10;

/** Writes a path for people: `$.items[3].callback`, `$["a key"]`, `$.cache{key 2}.id`. Long ones are shortened in the middle. */
export function formatPath(segments: readonly PathSegment[]): string {
  if (segments.length <= 2 * MAX_SEGMENTS_AT_EACH_END) return `$${segments.map(formatSegment).join('')}`;
  const head = segments.slice(0, MAX_SEGMENTS_AT_EACH_END).map(formatSegment).join('');
  const tail = segments.slice(-MAX_SEGMENTS_AT_EACH_END).map(formatSegment).join('');
  return `$${head} … ${segments.length - 2 * MAX_SEGMENTS_AT_EACH_END} more … ${tail}`;
}

function formatSegment(segment: PathSegment): string {
  if (typeof segment === 'number') return `[${segment}]`;
  if (typeof segment === 'object') return `{${segment.part}}`;
  if (segment.length > MAX_NAME_LENGTH) return `[${JSON.stringify(`${segment.slice(0, MAX_NAME_LENGTH)}…`)}]`;
  return IDENTIFIER.test(segment) ? `.${segment}` : `[${JSON.stringify(segment)}]`;
}
