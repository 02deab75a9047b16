import type { Fault } from '../fault.js';
import type { ControlVerb } from '../programs/messages.js';
import { later } from '../crew.js';
import { victimOf } from './victims.js';

const STORM_EVERY_MS = 200;
/** What IDs begin with that are started many times at once. */
const STORM = 'storm ';
const LEAST_TOLD = 8;

export const duplicateStarts: Fault = {
  name: 'duplicate-starts',
  does: 'eight clients enqueue the same ID at once, with different inputs, and all executors start it',
  landsWhen: 'eight and more were told that it is started',
  wants: {},
  async run({ crew, client, random, hit, pause }) {
    while (await pause(STORM_EVERY_MS * random.between(0.2, 1.8))) {
      // Never the same one again, in whichever turn of this fault.
      const workflowId = `${STORM}${String(Math.floor(random.next() * 1e12))}`;
      const all = [client, ...crew.running].map((member) => member.tell({ do: 'storm', workflowId }));
      // Who is killed meanwhile does not answer.
      const told = (await Promise.all(all)).reduce<number>((sum, count) => sum + Number(count ?? 0), 0);
      if (told >= LEAST_TOLD) hit(`${workflowId}: ${String(told)}`);
    }
  },
};

const VERBS: readonly ControlVerb[] = ['cancel', 'fork', 'force-delete'];
/** Workflows of which a fork ends by itself. */
const FORKABLE = ['short', 'steps', 'paying', 'poster', 'herald', 'sleeper'];
const TARGETS = 4;

export const controls: Fault = {
  name: 'controls',
  does: 'workflows are cancelled, forked and deleted, and ended ones removed by a retention, while their owner has just died, or been taken for dead, and others recover them',
  landsWhen:
    'the operation was carried out on a workflow of the dead owner, or the retention came to a child whose parent waits',
  wants: { takeover: true },
  traffic: { steps: 3, short: 2, paying: 2, parent: 5, sleeper: 2, herald: 1, poster: 1, queued: 2, mailbox: 1 },
  async run(arena) {
    const { crew, client, random, leaseMs, sql, hit } = arena;
    while (await arena.pause(leaseMs * 0.5 * random.between(0.2, 1.8))) {
      const victim = victimOf(arena);
      if (victim === undefined) continue;
      if (random.next() < 0.3) await crew.strikeDead(victim);
      victim.expired();
      await sql(
        `UPDATE holdfast.executor SET lease_until = clock_timestamp() - interval '1 s' WHERE executor_id = $1`,
        [victim.executorId],
      );
      // A start that is still under way when its ID is deleted rightly starts it anew: storms are left alone.
      const owned = await sql<{ workflow_id: string; name: string }>(
        `SELECT workflow_id, name FROM holdfast.workflow_status
          WHERE executor_id = $1 AND status = 'PENDING' AND NOT starts_with(workflow_id, $2)
          ORDER BY random() LIMIT ${String(TARGETS)}`,
        [victim.executorId, STORM],
      );
      const awaited = await sql<{ workflow_id: string }>(
        `SELECT c.workflow_id FROM holdfast.workflow_status c
           JOIN holdfast.workflow_status p ON p.workflow_id = c.parent_id
          WHERE c.completed_at IS NOT NULL AND p.completed_at IS NULL ORDER BY random() LIMIT ${String(TARGETS)}`,
      );
      const acts = [
        ...owned.map(async ({ workflow_id: workflowId, name }) => {
          const verb = FORKABLE.includes(name) ? random.pick(VERBS) : random.pick(['cancel', 'force-delete'] as const);
          const isDone = await client.tell({ do: 'control', verb: verb ?? 'cancel', workflowId });
          if (isDone === true) hit(`${String(verb)} ${workflowId}`);
        }),
        ...awaited.map(async ({ workflow_id: workflowId }) => {
          await client.tell({ do: 'control', verb: 'retain', workflowId });
          hit(`retention of ${workflowId}`);
        }),
      ];
      await Promise.all(acts);
      await later(0);
    }
  },
};
