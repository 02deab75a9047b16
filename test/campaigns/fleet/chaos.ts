import { setTimeout as pause } from 'node:timers/promises';

import type { SeededRandom } from '../support/seeded-random.js';
import type { Fleet } from './fleet.js';
import type { FleetOptions } from './plan.js';

/** Share of the executors that are left alone at any moment; one at least. */
const LEAST_WELL = 0.25;
/** Shorter and longer than a lease: what was stopped for less goes on with what it had, for more finds it taken. */
const SHORTEST_PAUSE_LEASES = 0.5;
const LONGEST_PAUSE_LEASES = 2.5;
const LONGEST_DOWN_LEASES = 1.5;

/** Kills and stops executors at random, for as long as the options say; ends when all are well again. */
export async function disturb(fleet: Fleet, options: FleetOptions, random: SeededRandom): Promise<void> {
  const { executors, chaosMs, leaseMs, disturbanceMs } = options;
  const leastWell = Math.max(1, Math.floor(executors * LEAST_WELL));
  const until = performance.now() + chaosMs;
  const underWay: Promise<void>[] = [];
  for (;;) {
    const waitMs = disturbanceMs * random.between(0.2, 1.8);
    if (performance.now() + waitMs >= until) break;
    await pause(waitMs);
    const well = fleet.running;
    const victim = random.pick(well);
    if (victim === undefined || well.length <= leastWell) continue;
    if (random.next() < 0.5) {
      underWay.push(fleet.replace(victim, random, random.between(0, LONGEST_DOWN_LEASES) * leaseMs));
    } else {
      victim.stop();
      const pauseMs = random.between(SHORTEST_PAUSE_LEASES, LONGEST_PAUSE_LEASES) * leaseMs;
      underWay.push(
        pause(pauseMs).then(() => {
          victim.continue();
        }),
      );
    }
  }
  await Promise.all(underWay);
}
