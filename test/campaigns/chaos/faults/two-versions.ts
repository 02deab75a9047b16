import type { Fault } from '../fault.js';
import { compileOldWorker } from '../old-release.js';
import { later } from '../crew.js';

const OLD_EXECUTORS = 2;
const EVERY_LEASES = 0.7;

export const twoVersions: Fault = {
  name: 'two-versions',
  does: 'two executors of the oldest release that may run on this schema work beside those of this one, and executors of both are taken for dead',
  landsWhen: 'a workflow went from an executor of one release to one of the other',
  wants: { takeover: true },
  traffic: { steps: 4, short: 3, parent: 2, sleeper: 2 },
  alone: true,
  async run(arena) {
    const { crew, random, leaseMs, sql, hit } = arena;
    const old = await compileOldWorker();
    try {
      const members = [];
      for (let index = 0; index < OLD_EXECUTORS; index++) {
        members.push(await crew.launch({ program: old.program, executorId: `old ${String(index)}` }));
      }
      const seen = new Set<string>();
      while (await arena.pause(leaseMs * EVERY_LEASES * random.between(0.2, 1.8))) {
        const victim = random.pick(crew.running);
        if (victim === undefined) continue;
        victim.expired();
        await sql(
          `UPDATE holdfast.executor SET lease_until = clock_timestamp() - interval '1 s' WHERE executor_id = $1`,
          [victim.executorId],
        );
        await later(leaseMs * 0.3);
        const moved = await sql<{ place: string }>(
          `SELECT e.workflow_id || ' ' || e.epoch AS place
             FROM holdfast.ended_ownership e
             JOIN holdfast.workflow_status s ON s.workflow_id = e.workflow_id AND s.epoch > e.epoch
            WHERE e.ended_how = 'taken over' AND s.epoch = e.epoch + 1
              AND starts_with(e.executor_id, 'old') <> starts_with(s.executor_id, 'old')`,
        );
        for (const { place } of moved.filter((each) => !seen.has(each.place))) {
          seen.add(place);
          hit(place);
        }
      }
      for (const member of members) await crew.dismiss(member);
    } finally {
      await old.remove();
    }
  },
};
