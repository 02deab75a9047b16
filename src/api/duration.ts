/**
 * A length of time: a number of milliseconds, or a number with a unit.
 *
 * @example
 * 250, '250ms', '10s', '1.5m', '1h', '7d'
 */
export type Duration = number | `${number}${'ms' | 's' | 'm' | 'h' | 'd'}`;
