import type { PageQuery, RecordPage } from '../../admin-store.js';
import { decodeCursor, encodeCursor, type CursorForm } from '../../record-cursor.js';

/** Most bytes of payloads in one page; it has at least one row. */
const MOST_PAYLOAD_BYTES = 32 * 2 ** 20;

/** One page of a list that is sorted. A row's parts name its place in the list. */
export function pageOf<Row, Item>(
  rows: readonly Row[],
  query: PageQuery,
  list: {
    readonly form: CursorForm;
    readonly partsOf: (row: Row) => readonly string[];
    /** Whether it comes after the row with these parts. */
    readonly isAfter: (row: Row, parts: readonly string[]) => boolean;
    readonly itemOf: (row: Row) => Item;
    readonly bytesOf?: (row: Row) => number;
  },
): RecordPage<Item> {
  const after = decodeCursor(list.form, query.cursor);
  const rest = after === null ? rows : rows.filter((row) => list.isAfter(row, after));
  let bytes = 0;
  const end = rest.findIndex((row, index) => {
    bytes += list.bytesOf?.(row) ?? 0;
    return index >= query.limit || (index > 0 && bytes > MOST_PAYLOAD_BYTES);
  });
  const page = end === -1 ? rest : rest.slice(0, end);
  const last = page.at(-1);
  const hasMore = page.length < rest.length && last !== undefined;
  return {
    items: page.map(list.itemOf),
    nextCursor: hasMore ? encodeCursor(list.form, list.partsOf(last)) : null,
  };
}

export function toDate(ms: number | null): Date | null {
  return ms === null ? null : new Date(ms);
}

export function bytesOf(...texts: readonly (string | null | undefined)[]): number {
  return texts.reduce((bytes, text) => bytes + Buffer.byteLength(text ?? ''), 0);
}
