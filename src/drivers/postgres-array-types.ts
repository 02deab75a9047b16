import type { SqlRow } from './driver.js';

/** How the library finds the parser and the serializer of a type, by OID. It looks at each statement. */
export interface TypeRegistry {
  readonly parsers: Record<number, ((text: string) => unknown) | undefined>;
  readonly serializers: Record<number, ((value: unknown) => unknown) | undefined>;
  readonly shared: { readonly typeArrayMap: Record<number, number> };
}

export const READ_ARRAY_TYPES = `SELECT oid AS element, typarray AS "array", typdelim::pg_catalog.text AS delimiter
  FROM pg_catalog.pg_type WHERE typarray OPERATOR(pg_catalog.<>) 0`;

/**
 * Makes arrays known to the library, for the statements that users send in a transaction. The library can ask the server
 * itself (`fetch_types`), but when the connection breaks while it does, that is an unhandled rejection.
 * @param rows the answer to {@link READ_ARRAY_TYPES}.
 */
export function registerArrayTypes(registry: TypeRegistry, rows: readonly SqlRow[]): void {
  for (const row of rows) {
    const { element, array, delimiter } = row as { element: number; array: number; delimiter: string };
    registry.shared.typeArrayMap[element] = array;
    registry.parsers[array] ??= (text) => readArray(text, delimiter, registry.parsers[element]);
    registry.serializers[array] ??= (value) =>
      Array.isArray(value) ? writeArray(value, delimiter, registry.serializers[element]) : value;
  }
}

function writeArray(items: readonly unknown[], delimiter: string, write: ((value: unknown) => unknown) | undefined) {
  const written = items.map((item): string => {
    if (item === null || item === undefined) return 'NULL';
    if (Array.isArray(item)) return writeArray(item, delimiter, write);
    const text = String(write === undefined ? item : write(item));
    return `"${text.replace(/["\\]/g, '\\$&')}"`;
  });
  return `{${written.join(delimiter)}}`;
}

/** One item and what follows it: quoted, or plain up to a delimiter or brace. */
function readArray(text: string, delimiter: string, read: ((text: string) => unknown) | undefined): unknown[] {
  const item = new RegExp(`"((?:[^"\\\\]|\\\\.)*)"|[^{}"${delimiter}]+|[{}]`, 'gsu');
  const root: unknown[] = [];
  const nesting: unknown[][] = [root];
  item.lastIndex = text.indexOf('{');
  for (let match = item.exec(text); match !== null; match = item.exec(text)) {
    const [whole, quoted] = match;
    const innermost = nesting.at(-1) ?? root;
    if (whole === '{') {
      const inner: unknown[] = [];
      innermost.push(inner);
      nesting.push(inner);
    } else if (whole === '}') {
      nesting.pop();
    } else if (quoted === undefined && whole === 'NULL') {
      innermost.push(null);
    } else {
      const value = quoted === undefined ? whole : quoted.replace(/\\(.)/gs, '$1');
      innermost.push(read === undefined ? value : read(value));
    }
  }
  return (root[0] as unknown[] | undefined) ?? [];
}
