/**
 * The places in an order's life at which its worker is killed or stopped. `before` and `after` are in the worker: before a
 * statement or request is sent, and when its reply has come but nobody has heard of it. `arrived` and `done` are in the outside
 * world, with the worker waiting: before anything has come of the request, and when it is carried out and not answered.
 */
export const POINTS = [
  'reserve before',
  'reserve after',
  'intent before',
  'intent after',
  'charge before',
  'charge arrived',
  'charge done',
  'charge after',
  'record before',
  'record after',
  'lookup before',
  'lookup done',
  'lookup after',
  'refund before',
  'refund arrived',
  'refund done',
  'refund after',
  'compensation before',
  'compensation after',
  'close before',
  'close arrived',
  'close done',
  'close after',
  'confirm before',
  'confirm after',
  'notify before',
  'notify arrived',
  'notify done',
  'notify after',
  'relay before',
  'relay after',
] as const;

export type Point = (typeof POINTS)[number];

/** What happens to the worker there. */
export type Blow = 'kill' | 'pause';
export const BLOWS: readonly Blow[] = ['kill', 'pause'];

export function isPoint(name: string): name is Point {
  return (POINTS as readonly string[]).includes(name);
}

/** Whether it is the outside world that notices. */
export function isOutside(point: Point): boolean {
  return point.endsWith(' arrived') || point.endsWith(' done');
}

/** Set at a point, for whoever comes by next. */
export interface Trap {
  readonly point: Point;
  readonly blow: Blow;
}
