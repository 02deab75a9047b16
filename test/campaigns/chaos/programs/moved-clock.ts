/** Loaded before anything else: the wall clock of this process can be moved, as an operator or NTP does. The monotonic clock goes on. */
const RealDate = Date;
let offsetMs = 0;

class MovedDate extends RealDate {
  constructor(...args: readonly unknown[]) {
    if (args.length === 0) super(RealDate.now() + offsetMs);
    else super(...(args as [number]));
  }

  static override now(): number {
    return RealDate.now() + offsetMs;
  }
}

globalThis.Date = MovedDate as DateConstructor;

export function moveClock(byMs: number): void {
  offsetMs = byMs;
}
