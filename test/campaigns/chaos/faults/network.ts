import type { Fault } from '../fault.js';
import { later } from '../crew.js';
import type { Member } from '../member.js';
import { armEverywhere, isWrite } from './lost-replies.js';
import { strikeForTakeovers } from './victims.js';

/** The time limit of statements, after which a connection that carries nothing is given up, and some more. */
const STATEMENT_LIMIT_MS = 35_000;
/** Share of the black holes whose process is killed when others have taken its work over, as an operator would. */
const KILLED = 0.75;
const BLACK_LEASES = 2.5;

export const blackHole: Fault = {
  name: 'black-hole',
  does: 'all connections of an executor stay open and carry nothing, without a reset, and new ones are not answered, for 2.5 leases; three quarters of them are killed then',
  landsWhen: 'workflows that it owned were taken over meanwhile',
  wants: { takeover: true },
  lingersMs: STATEMENT_LIMIT_MS,
  async run(arena) {
    const { crew, random, leaseMs } = arena;
    const cutOff = async (victim: Member): Promise<void> => {
      victim.disturbed();
      await victim.proxy.admit('silent');
      victim.proxy.blackHoleAll();
      await later(BLACK_LEASES * leaseMs);
    };
    await strikeForTakeovers(
      arena,
      1,
      (victim) => (victim.isTroubled ? undefined : cutOff(victim)),
      async (victim) => {
        if (random.next() < KILLED) return crew.strikeDead(victim);
        await victim.proxy.admit('open');
        void later(STATEMENT_LIMIT_MS).then(() => {
          victim.undisturbed();
        });
      },
    );
  },
};

/** Milliseconds. */
const LONGEST_DELAY = 80;
const FRAGMENT_BYTES = 100;

export const delay: Fault = {
  name: 'delay',
  does: `a fifth of the writes come up to ${String(LONGEST_DELAY)} ms late, and everything comes in pieces of up to ${String(FRAGMENT_BYTES)} bytes`,
  landsWhen: 'the proxy held a write back',
  wants: {},
  async run(arena) {
    const end = arena.crew.eachMember(({ proxy }) => {
      proxy.fragment(FRAGMENT_BYTES);
    });
    const delayMs = arena.random.between(1, LONGEST_DELAY);
    await armEverywhere(
      arena,
      () => ({ do: 'delay', delayMs }),
      isWrite,
      0.2,
      () => {
        arena.hit('a write');
      },
    );
    end();
    for (const { proxy } of arena.crew.all) proxy.fragment(undefined);
  },
};

const TERMINATE_EVERY_MS = 60;

export const terminate: Fault = {
  name: 'terminate-backend',
  does: 'pg_terminate_backend of a session of an executor',
  landsWhen: 'the session had a transaction open, or a statement under way',
  wants: {},
  async run(arena) {
    while (await arena.pause(TERMINATE_EVERY_MS)) {
      const [victim] = await arena.sql<{ app: string; state: string }>(
        `SELECT a.application_name AS app, a.state, pg_terminate_backend(a.pid)
           FROM (SELECT * FROM pg_stat_activity
                  WHERE application_name LIKE 'executor%' AND (state <> 'idle' OR random() < 0.02)
                  ORDER BY state = 'idle', random() LIMIT 1) a`,
      );
      if (victim !== undefined && victim.state !== 'idle') arena.hit(`${victim.state} of ${victim.app}`);
    }
  },
};

const LISTENER_EVERY_MS = 250;

export const listenerLost: Fault = {
  name: 'listener-lost',
  does: 'the connection by which an executor listens is ended, or cut without a word to the server',
  landsWhen:
    'the server had a session whose last statement was LISTEN, or the question whether it is still there, and ended it',
  wants: {},
  async run(arena) {
    while (await arena.pause(LISTENER_EVERY_MS)) {
      const lost = await arena.sql<{ app: string }>(
        `SELECT a.application_name AS app, pg_terminate_backend(a.pid)
           FROM (SELECT * FROM pg_stat_activity
                  WHERE application_name LIKE 'executor%' AND (query LIKE 'LISTEN %' OR query = 'SELECT 1') ORDER BY random() LIMIT 1) a`,
      );
      for (const { app } of lost) arena.hit(app);
    }
  },
};
