/** Upper bounds of the sizes, in writes, by which flushes are counted; the last class has no bound. */
export const FLUSH_SIZES: readonly number[] = [1, 2, 5, 10, 25, 50, 100, 250];

/** What a store has counted since it was opened. */
export interface StoreCounters {
  /** Writes that met another version under their own token: expected under concurrency, and no error. */
  versionConflicts: number;
  /** Writes that met a row which somebody else had locked. */
  lockedRows: number;
  /** Writes that the database refuses. */
  refusedWrites: number;
  /** Flushes that were sent again: no connection, a lost reply, a server that was busy with itself. */
  repeatedFlushes: number;
  /** Writes that flushes carried. */
  flushedWrites: number;
  /** Flushes, by the class of {@link FLUSH_SIZES} that their size falls into. */
  readonly flushes: number[];
  /** Times the listening connection was lost. */
  listenerGaps: number;
}

export function newStoreCounters(): StoreCounters {
  return {
    versionConflicts: 0,
    lockedRows: 0,
    refusedWrites: 0,
    repeatedFlushes: 0,
    flushedWrites: 0,
    flushes: new Array<number>(FLUSH_SIZES.length + 1).fill(0),
    listenerGaps: 0,
  };
}

export function countFlush(counters: StoreCounters, writes: number): void {
  counters.flushedWrites += writes;
  let size = 0;
  while (size < FLUSH_SIZES.length && writes > (FLUSH_SIZES[size] ?? 0)) size += 1;
  counters.flushes[size] = (counters.flushes[size] ?? 0) + 1;
}
