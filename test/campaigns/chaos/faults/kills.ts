import type { ProxyStatement } from '../../../support/pg-proxy.js';
import { later } from '../crew.js';
import type { Fault } from '../fault.js';
import { countOwned, victimOf } from './victims.js';

/** Mean time between two blows, in leases. */
const EVERY_LEASES = 1;

export const kill: Fault = {
  name: 'kill',
  does: 'SIGKILL of an executor at a random moment; another one comes in its place',
  landsWhen: 'the process owned at least one workflow when it was dead',
  wants: { takeover: true },
  async run(arena) {
    const { crew, random, leaseMs, hit } = arena;
    while (await arena.pause(leaseMs * EVERY_LEASES * random.between(0.2, 1.8))) {
      const victim = victimOf(arena);
      if (victim === undefined) continue;
      await crew.strikeDead(victim);
      const owned = await countOwned(arena, victim);
      if (owned > 0) hit(`${victim.who} owned ${String(owned)}`);
    }
  },
};

/** Statements at which a process is killed: with the statement not sent, and with it carried out and not answered. */
const POINTS: readonly (readonly [name: string, statement: RegExp])[] = [
  ['start', /\bstart_batch\(/],
  ['claim', /\bclaim_work\(/],
  ['checkpoint', /\bcheckpoint_(one|batch)\(/],
  ['completion', /\bcomplete_batch\(/],
  ['intent', /\brecord_intent\(/],
  ['suspension', /\bsuspend_workflow\(/],
  ['event', /\brecord_(event|with_events)\(/],
  ['receipt', /\bconsume_message\(/],
  ['body of a transaction', /INSERT INTO chaos\.payment/],
  ['end of a transaction', /^COMMIT\b/i],
  ['delivery', /\bclaim_events\(/],
  ['delivered', /\bsettle_events\(/],
  ['heartbeat', /\bheartbeat\(/],
];
const PATIENCE_MS = 1_500;

export const killAtPoint: Fault = {
  name: 'kill-at-point',
  does: `SIGKILL of an executor at a named point: ${POINTS.map(([name]) => name).join(', ')}; before and after`,
  landsWhen:
    'its proxy held the statement back, or had seen it carried out and held its reply back, when the process died',
  wants: { takeover: true },
  async run(arena) {
    const { crew, hit, leaseMs } = arena;
    const kinds = POINTS.flatMap(([name, statement]) =>
      (['before', 'after'] as const).map((side) => ({ name, statement, side, hits: 0 })),
    );
    while (await arena.pause(leaseMs * 0.2)) {
      const victim = victimOf(arena);
      const [point] = [...kinds].sort((a, b) => a.hits - b.hits);
      if (victim === undefined || point === undefined) continue;
      const armed = victim.proxy.arm(
        point.side === 'before' ? { do: 'black-hole' } : { do: 'drop-reply', keep: true },
        ({ sql }: ProxyStatement) => point.statement.test(sql),
      );
      const hasHit = await Promise.race([armed.happened.then(() => true), later(PATIENCE_MS).then(() => false)]);
      armed.disarm();
      // What does not come by is asked for less often.
      point.hits += hasHit ? 1 : 0.5;
      if (!hasHit && armed.hits === 0) continue;
      await crew.strikeDead(victim);
      if (hasHit) hit(`${point.side} ${point.name}`);
    }
  },
};
