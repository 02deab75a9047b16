/** Compares as PostgreSQL does in the collation "C": by bytes of UTF-8. */
export function compareBytes(one: string, other: string): number {
  return one === other ? 0 : Buffer.compare(Buffer.from(one), Buffer.from(other));
}
