import type { BodyOfStep, LedgerEvent } from './ledger.js';

/** One run of a body, as the whole ledger shows it. Places are positions in the ledger: they say what came before what. */
export interface Body extends BodyOfStep {
  readonly pid: number;
  readonly beganAt: number;
  readonly began: number;
  ended: number | undefined;
  how: 'done' | 'aborted' | 'killed' | undefined;
  /** Where another body of the workflow began with this one under way: from there on this one is a zombie's. */
  superseded: number | undefined;
}

/** What was done to one process, in order. */
export interface ProcessLife {
  readonly pid: number;
  readonly executorId: string;
  readonly launchedAt: number;
  readonly launched: number;
  readonly stops: { readonly at: number; readonly place: number; until: number | undefined }[];
  killed: { readonly at: number; readonly place: number } | undefined;
  crashed: boolean;
}

export interface Story {
  readonly events: readonly LedgerEvent[];
  readonly bodies: readonly Body[];
  readonly processes: ReadonlyMap<number, ProcessLife>;
  /** When the disturbances ended. */
  readonly healedAt: number;
}

/** Reads the ledger once, from its beginning to its end. */
export function tellStory(events: readonly LedgerEvent[]): Story {
  const bodies: Body[] = [];
  const open = new Map<string, Body>();
  const processes = new Map<number, ProcessLife>();
  /** The body of each workflow that counts: the one that began last. */
  const current = new Map<string, Body>();
  let healedAt = Infinity;

  const close = (body: Body, place: number, how: NonNullable<Body['how']>): void => {
    body.ended = place;
    body.how = how;
    open.delete(body.run);
    if (current.get(body.workflowId) === body) current.delete(body.workflowId);
  };

  for (const [place, event] of events.entries()) {
    const life = processes.get(event.pid);
    switch (event.what) {
      case 'begin': {
        const { what: _, at, ...told } = event;
        const body: Body = {
          ...told,
          beganAt: at,
          began: place,
          ended: undefined,
          how: undefined,
          superseded: undefined,
        };
        const before = current.get(body.workflowId);
        // The other way round it is the one that begins that comes too late.
        if (before !== undefined && before.epoch <= body.epoch) before.superseded = place;
        if (before !== undefined && before.epoch > body.epoch) body.superseded = place;
        else current.set(body.workflowId, body);
        bodies.push(body);
        open.set(body.run, body);
        break;
      }
      case 'end': {
        const body = open.get(event.run);
        if (body !== undefined) close(body, place, event.how);
        break;
      }
      case 'launched':
        processes.set(event.pid, {
          pid: event.pid,
          executorId: event.executorId,
          launchedAt: event.at,
          launched: place,
          stops: [],
          killed: undefined,
          crashed: false,
        });
        break;
      case 'killed':
        if (life !== undefined) life.killed = { at: event.at, place };
        break;
      case 'crashed':
      case 'dead':
        if (life !== undefined) life.crashed = event.what === 'crashed';
        for (const body of open.values()) if (body.pid === event.pid) close(body, place, 'killed');
        break;
      case 'stopped':
        life?.stops.push({ at: event.at, place, until: undefined });
        break;
      case 'continued': {
        const stop = life?.stops.at(-1);
        if (stop !== undefined) stop.until = event.at;
        break;
      }
      case 'healed':
        healedAt = event.at;
        break;
    }
  }
  return { events, bodies, processes, healedAt };
}
