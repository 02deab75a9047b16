import type { ProxyStatement } from '../../../support/pg-proxy.js';
import { later } from '../crew.js';
import type { Fault } from '../fault.js';
import type { Member } from '../member.js';
import { strikeForTakeovers, untilAllDone, victimOf } from './victims.js';

/** Longer than the lease by far, and longer than a heartbeat needs to be missed. */
const PAUSE_LEASES = 2.5;
const EVERY_LEASES = 0.6;

export const pause: Fault = {
  name: 'pause',
  does: 'SIGSTOP of an executor at a random moment, for 2.5 leases',
  landsWhen: 'workflows that it owned were taken over while it stood still',
  wants: { takeover: true, refusal: true, parked: true },
  run: (arena) =>
    strikeForTakeovers(arena, EVERY_LEASES, (victim) => arena.crew.freeze(victim, PAUSE_LEASES * arena.leaseMs)),
};

/** The statement that records a transaction's result, or the one that ends it. */
export function endsTransaction({ sql }: ProxyStatement): boolean {
  return /\b(?:checkpoint|conclude)_transaction\(/.test(sql) || /^COMMIT\b/i.test(sql);
}

/** How long such a statement is held back so that the process can be stopped before it arrives, in milliseconds. */
const HELD_MS = 40;
/** Share of the pauses that are aimed at the end of a transaction, and how long such a one is waited for. */
const AIMED = 0.5;
const AIM_MS = 300;

export const pauseInTransaction: Fault = {
  name: 'pause-in-transaction',
  does: 'SIGSTOP of an executor inside open transactions, for 2.5 leases: at random, or with the checkpoint or COMMIT on its way',
  landsWhen: 'the server had a transaction of the stopped process open; each of them counts',
  wants: { takeover: true, refusal: true, parked: true },
  traffic: { paying: 8, short: 1 },
  crew: { outstanding: 16, maxConnections: 14, transactionMs: 40 },
  async run(arena) {
    const { crew, random, leaseMs, sql, hit } = arena;
    const underWay = new Set<Promise<void>>();
    while (await arena.pause(leaseMs * 0.3 * random.between(0.2, 1.8))) {
      const victim = victimOf(arena);
      if (victim === undefined) continue;
      if (random.next() < AIMED) await untilTransactionEnds(victim);
      if (victim.state !== 'running') continue;
      victim.stop();
      const [open] = await sql<{ count: number }>(
        `SELECT count(*)::int AS count FROM pg_stat_activity
          WHERE application_name = $1 AND (state LIKE 'idle in transaction%' OR query ~ '(checkpoint|conclude)_transaction\\(' AND state = 'active')`,
        [victim.who],
      );
      const count = open?.count ?? 0;
      if (count === 0) {
        victim.continue();
        continue;
      }
      for (let each = 0; each < count; each++) hit(`a transaction of ${victim.who}`);
      const frozen = later(PAUSE_LEASES * leaseMs).then(() => {
        victim.continue();
        underWay.delete(frozen);
      });
      underWay.add(frozen);
    }
    await untilAllDone(underWay);
    for (const member of crew.all) member.continue();
  },
};

/** Resolves when the end of a transaction is held back at the proxy, or none came. */
async function untilTransactionEnds(victim: Member): Promise<void> {
  const held = victim.proxy.arm({ do: 'delay', delayMs: HELD_MS }, endsTransaction);
  await Promise.race([held.happened, later(AIM_MS)]);
  held.disarm();
}
