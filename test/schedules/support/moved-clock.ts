/** The same database for sessions whose clock stands at this moment, and goes on from there. */
export function withClockAt(url: string, moment: Date | string): string {
  const seconds = (new Date(moment).getTime() - Date.now()) / 1_000;
  const moved = new URL(url);
  moved.searchParams.set('options', `-c holdfast.clock_offset=${seconds.toFixed(3)}s`);
  return moved.href;
}
