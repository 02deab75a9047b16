import type { Fault } from '../fault.js';

/** Mean time between two blows, in leases. */
const EVERY_LEASES = 1;
/** So many executors are left alone at any moment. */
const LEAST_WELL = 1;

export const kill: Fault = {
  name: 'kill',
  does: 'SIGKILL of an executor at a random moment; another one comes in its place',
  landsWhen: 'the process owned at least one workflow when it was killed',
  wants: { takeover: true },
  async run({ crew, random, leaseMs, sql, hit, pause }) {
    while (await pause(leaseMs * EVERY_LEASES * random.between(0.2, 1.8))) {
      const { running } = crew;
      const victim = random.pick(running);
      if (victim === undefined || running.length <= LEAST_WELL) continue;
      await crew.strikeDead(victim);
      const [owned] = await sql<{ count: number }>(
        `SELECT count(*)::int AS count FROM holdfast.workflow_status
          WHERE status = 'PENDING' AND executor_id = $1`,
        [victim.executorId],
      );
      if ((owned?.count ?? 0) > 0) hit(`${victim.who} owned ${String(owned?.count)}`);
    }
  },
};
