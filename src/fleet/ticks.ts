import { Cron } from 'croner';
import { InvalidCronError } from '../errors/schedule-errors.js';

const SECOND_MS = 1_000;
const LONGEST_CRON_CHARACTERS = 255;
/** Offsets are not for this: processes on different versions of Node.js do not agree on whether they are time zones. */
const ZONE_NAME = /^[A-Za-z][A-Za-z0-9_+-]*(\/[A-Za-z0-9_+-]+)*$/;

/**
 * The ticks of a cron expression in a time zone, in milliseconds since 1970: whole seconds, computed and never waited for.
 *
 * When clocks are changed: a fixed time of day (no `*` and no step among seconds, minutes and hours) fires once a day, at the first
 * of two equal times, and at the end of a gap that swallows it. Everything else follows real time: through a repeated hour
 * twice, and past a gap.
 */
export class Ticks {
  readonly #cron: Cron;

  /** @throws InvalidCronError */
  constructor(cron: string, timeZone: string) {
    checkZone(timeZone);
    // A date is a pattern to croner, and so is one with a colon in it only.
    if (typeof cron !== 'string' || cron.length > LONGEST_CRON_CHARACTERS || cron.includes(':')) {
      throw new InvalidCronError('A cron expression has five fields, or six with the seconds first.');
    }
    try {
      this.#cron = new Cron(cron, {
        timezone: timeZone,
        mode: '5-or-6-parts',
        fixedTimeRule: 'no-wildcard',
        paused: true,
      });
    } catch (cause) {
      throw new InvalidCronError(
        `"${cron}" is not a cron expression of five fields, or six with the seconds first: ${messageOf(cause)}`,
        { cause },
      );
    }
  }

  /** @throws InvalidCronError when there is none any more. */
  after(ms: number): number {
    const next = this.#cron.nextRun(new Date(ms));
    if (next === null) throw new InvalidCronError('The cron expression names a time that never comes.');
    return next.getTime();
  }

  /** Up to `count` of them, the first one after `ms`. @throws InvalidCronError */
  following(ms: number, count: number): number[] {
    const ticks: number[] = [];
    for (let last = ms; ticks.length < count; ticks.push(last)) last = this.after(last);
    return ticks;
  }

  /** The last one at or before `ms`; null when there is none. */
  upTo(ms: number): number | null {
    const end = Math.floor(ms / SECOND_MS) * SECOND_MS + SECOND_MS;
    let last = this.#cron.previousRuns(1, new Date(end))[0]?.getTime();
    if (last === undefined) return null;
    // Where the two directions see a change of clocks differently, the forward one decides: ticks are fired in it.
    for (let next = this.after(last); next <= ms; next = this.after(next)) last = next;
    return last;
  }
}

function checkZone(timeZone: string): void {
  try {
    if (ZONE_NAME.test(timeZone)) {
      new Intl.DateTimeFormat('en', { timeZone });
      return;
    }
  } catch (cause) {
    throw new InvalidCronError(`"${timeZone}" is not a time zone that this Node.js knows.`, { cause });
  }
  throw new InvalidCronError(`"${timeZone}" is not the name of a time zone, such as "Europe/Berlin" or "UTC".`);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
