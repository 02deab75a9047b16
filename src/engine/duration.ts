import type { Duration } from '../api/duration.js';
import { InvalidArgumentError } from '../errors/admin-errors.js';

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const FORM = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/;
/** A thousand years: further away a timestamp would leave PostgreSQL's and JavaScript's ranges. */
export const LONGEST_DURATION_MS = 365_250 * 86_400_000;

/**
 * Milliseconds, rounded up to whole ones.
 * @throws InvalidArgumentError naming `what` when the value is not of the documented form, negative, or over 1,000 years.
 */
export function parseDuration(value: Duration, what: string): number {
  const ms = typeof value === 'number' ? value : parseText(value);
  if (!Number.isFinite(ms) || ms < 0 || ms > LONGEST_DURATION_MS) {
    throw new InvalidArgumentError(
      `${what} must be milliseconds as a number, or a number with a unit (ms, s, m, h, d) such as '10s'; at most 1,000 years.`,
    );
  }
  return Math.ceil(ms);
}

function parseText(text: unknown): number {
  const match = typeof text === 'string' ? FORM.exec(text) : null;
  const unit = match?.[2] === undefined ? undefined : UNIT_MS[match[2]];
  return unit === undefined ? NaN : Number(match?.[1]) * unit;
}
