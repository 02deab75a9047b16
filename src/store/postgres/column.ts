import type { SqlParameter } from '../../drivers/driver.js';

type Value = string | number | boolean | null;

/**
 * An array parameter with a value an item. Null where all are null: functions take that for the same, and it is neither
 * written nor sent nor read.
 */
export function columnOf<Item>(items: readonly Item[], pick: (item: Item) => Value): SqlParameter {
  return unlessEmpty(items.map(pick));
}

/** The column, or null where it holds nothing else. */
export function unlessEmpty(column: readonly Value[]): SqlParameter {
  return column.some((value) => value !== null) ? column : null;
}
