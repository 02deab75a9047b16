import { later } from '../crew.js';
import type { Fault } from '../fault.js';
import type { Member } from '../member.js';
import { countOwned, countTaken, strikeForTakeovers } from './victims.js';

const FALSE_DEATH_EVERY_LEASES = 0.5;

export const falseDeath: Fault = {
  name: 'false-death',
  does: 'the lease of a live executor is ended by SQL, so that the others take it for dead',
  landsWhen: 'workflows that it owned and was running were taken over',
  wants: { takeover: true, refusal: true, parked: true },
  async run(arena) {
    const { crew, random, leaseMs, sql, hit } = arena;
    while (await arena.pause(leaseMs * FALSE_DEATH_EVERY_LEASES * random.between(0.2, 1.8))) {
      const victim = random.pick(crew.running);
      if (victim === undefined) continue;
      const before = await countTaken(arena, victim);
      victim.expired();
      await sql(
        `UPDATE holdfast.executor SET lease_until = clock_timestamp() - interval '1 s'
          WHERE executor_id = $1 AND lease_until > clock_timestamp()`,
        [victim.executorId],
      );
      await later(leaseMs * 0.5);
      const taken = (await countTaken(arena, victim)) - before;
      if (taken > 0 && victim.state === 'running') hit(`${String(taken)} workflows were taken from ${victim.who}`);
    }
  },
};

const BLOCKED_LEASES = 2;

export const blockedLoop: Fault = {
  name: 'blocked-loop',
  does: 'the event loop of an executor stands still for two leases: a long calculation in its process',
  landsWhen: 'workflows that it owned were taken over meanwhile',
  wants: { takeover: true, parked: true },
  async run(arena) {
    const block = async (victim: Member): Promise<void> => {
      victim.disturbed();
      await victim.tell({ do: 'block', ms: BLOCKED_LEASES * arena.leaseMs });
      victim.undisturbed();
    };
    await strikeForTakeovers(arena, 1, (victim) => (victim.isTroubled ? undefined : block(victim)));
  },
};

const HOUR_MS = 3_600_000;
const CLOCK_EVERY_MS = 200;

export const clock: Fault = {
  name: 'clock',
  does: 'the wall clock of an executor is an hour fast or slow, and steps back; its monotonic clock goes on',
  landsWhen: 'the clock was moved while the process owned workflows',
  wants: {},
  async run(arena) {
    const { crew, random, hit } = arena;
    while (await arena.pause(CLOCK_EVERY_MS * random.between(0.2, 1.8))) {
      const victim = random.pick(crew.running);
      if (victim === undefined) continue;
      const offsetMs = random.pick([HOUR_MS, -HOUR_MS, 0, 1_000, -1_000]) ?? 0;
      await victim.tell({ do: 'clock', offsetMs });
      if ((await countOwned(arena, victim)) > 0) hit(`${victim.who} by ${String(offsetMs)} ms`);
    }
    await Promise.all(crew.running.map((member) => member.tell({ do: 'clock', offsetMs: 0 })));
  },
};

const SAMPLE_EVERY_MS = 150;

export const smallPool: Fault = {
  name: 'small-pool',
  does: 'every executor has two connections for everything, transactions included, and one to listen',
  landsWhen: 'both were seen busy at the same moment',
  wants: {},
  alone: true,
  crew: { maxConnections: 2, outstanding: 20 },
  async run(arena) {
    while (await arena.pause(SAMPLE_EVERY_MS)) {
      const busy = await arena.sql<{ app: string }>(
        `SELECT application_name AS app FROM pg_stat_activity
          WHERE application_name LIKE 'executor%' AND (state = 'active' OR state LIKE 'idle in transaction%')
          GROUP BY 1 HAVING count(*) >= 2`,
      );
      for (const { app } of busy) arena.hit(app);
    }
  },
};
