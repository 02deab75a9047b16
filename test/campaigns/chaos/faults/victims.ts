import type { Arena } from '../fault.js';
import type { Member } from '../member.js';

/** So many executors are left alone at any moment. */
const LEAST_WELL = 1;

/** One that may be struck now; undefined: too few are well. */
export function victimOf({ crew, random }: Arena): Member | undefined {
  const { running } = crew;
  return running.length <= LEAST_WELL ? undefined : random.pick(running);
}

/** How many workflows an executor owns. */
export async function countOwned({ sql }: Arena, { executorId }: Member): Promise<number> {
  const [row] = await sql<{ count: number }>(
    `SELECT count(*)::int AS count FROM holdfast.workflow_status WHERE status = 'PENDING' AND executor_id = $1`,
    [executorId],
  );
  return row?.count ?? 0;
}

/** How many workflows have been taken from an executor up to now. */
export async function countTaken({ sql }: Arena, { executorId }: Member): Promise<number> {
  const [row] = await sql<{ count: number }>(
    `SELECT count(*)::int AS count FROM holdfast.ended_ownership WHERE ended_how = 'taken over' AND executor_id = $1`,
    [executorId],
  );
  return row?.count ?? 0;
}

/** Waits for pauses that are under way. */
export async function untilAllDone(underWay: ReadonlySet<Promise<void>>): Promise<void> {
  while (underWay.size > 0) await Promise.all(underWay);
}

/**
 * Strikes one executor after the other, several at once, until the fault's time is over and all strikes are. `strike` resolves when that one is over,
 * and gives undefined where it does not strike this one now. A hit: others have taken workflows from it meanwhile.
 *
 * @param everyLeases from one strike to the next, on average
 * @param heal what there is to do when that was looked at
 */
export async function strikeForTakeovers(
  arena: Arena,
  everyLeases: number,
  strike: (victim: Member) => Promise<unknown> | undefined,
  heal?: (victim: Member) => Promise<void>,
): Promise<void> {
  const { random, leaseMs, hit } = arena;
  const underWay = new Set<Promise<void>>();
  while (await arena.pause(leaseMs * everyLeases * random.between(0.2, 1.8))) {
    const victim = victimOf(arena);
    if (victim === undefined) continue;
    const before = await countTaken(arena, victim);
    const struck = strike(victim);
    if (struck === undefined) continue;
    const over = struck.then(async () => {
      const taken = (await countTaken(arena, victim)) - before;
      if (taken > 0) hit(`${String(taken)} workflows were taken from ${victim.who}`);
      await heal?.(victim);
      underWay.delete(over);
    });
    underWay.add(over);
  }
  await untilAllDone(underWay);
}
