import { afterAll, beforeAll, expect, test } from 'vitest';
import { defineWorkflow, runStep, sleep, workflow, type Logger } from '../../src/index.js';
import { definitionOf, type WorkflowDefinition } from '../../src/engine/definitions.js';
import { createBed, type Bed } from '../support/launch.js';
import { launchParts } from './support/parts.js';
import { statusRow } from './support/sweeps.js';

// Somebody else changes the row of a workflow that runs, without taking it over.

let bed: Bed;
beforeAll(async () => {
  bed = await createBed();
  // Brings the schema.
  await (await bed.launch({ workflows: [defineWorkflow('first', () => Promise.resolve())] })).close();
});
afterAll(() => bed.close());

/** What an operator's UPDATE of a priority or an attribute does. */
async function bump(workflowId: string): Promise<void> {
  await bed.sql.query(
    `UPDATE holdfast.workflow_status SET record_version = record_version + 1, attributes = '{"priority": 1}'
      WHERE workflow_id = $1`,
    [workflowId],
  );
}

test('writers that move the version between checkpoints are followed: no error, no loss, no body run twice', async () => {
  const workflowId = 'followed';
  const bodies: string[] = [];
  const problems: string[] = [];
  const logger: Logger = {
    debug: () => undefined,
    info: () => undefined,
    warn: (message) => void problems.push(message),
    error: (message) => void problems.push(message),
  };
  const body = (name: string) =>
    runStep(name, async () => {
      bodies.push(name);
      await bump(workflowId);
    });
  const child = defineWorkflow('followed child', () => Promise.resolve());
  const run = defineWorkflow('followed', async () => {
    await body('first');
    await bump(workflowId);
    await sleep(1);
    await bump(workflowId);
    await child();
    await Promise.all([body('second'), body('third')]);
    await bump(workflowId);
    return workflow().epoch;
  });
  const holdfast = await bed.launch({ workflows: [run, child], logger });
  // What launch has to say about the server.
  problems.length = 0;
  expect(await (await holdfast.start(run, { workflowId })).result()).toBe(1);
  expect(bodies).toEqual(['first', 'second', 'third']);
  expect(problems).toEqual([]);
  // Counted as what they are, and as nothing else.
  expect(holdfast.health().versionConflicts).toBeGreaterThanOrEqual(3);
  // Six bumps; first, second and third, sleep and its intent, child and its intent; start and completion.
  expect(await statusRow(bed.sql, workflowId)).toMatchObject({ epoch: 1, attempts: 1, record_version: 6 + 7 + 2 });
  await holdfast.close();
});

const POLICY = { maxRequeues: 2, firstDelayMs: 10, longestDelayMs: 15 };

test('a version that moves with every try: requeued with growing delays, and ended as stuck after the limit', async () => {
  const workflowId = 'livelocked';
  let bodies = 0;
  const run = defineWorkflow('livelocked', () => runStep('work', async () => void (bodies += 1)));
  const parts = await launchParts(bed.database.url, {
    workflows: [run],
    requeues: POLICY,
    observer: (text) => (text.includes('checkpoint_one') ? bump(workflowId) : undefined),
  });
  const delays = await recordDelays(workflowId);
  await parts.engine.start(workflowDefinition(run), { workflowId }, []);
  await expect(parts.result(workflowId)).rejects.toMatchObject({ code: 'WORKFLOW_STUCK' });
  expect(bodies).toBe(3);
  expect(await delays()).toEqual([10, 15]);
  const { rows } = await bed.sql.query(
    'SELECT status, attention, epoch::int4 FROM holdfast.workflow_status WHERE workflow_id = $1',
    [workflowId],
  );
  expect(rows).toEqual([{ status: 'ERROR', attention: 'STUCK', epoch: 3 }]);
});

test('any progress resets the count of requeues', async () => {
  const workflowId = 'progresses';
  const run = defineWorkflow('progresses', async () => {
    await runStep('one', () => Promise.resolve());
    await runStep('two', () => Promise.resolve());
    return workflow().epoch;
  });
  // Six tries make one requeue: twice two of them, each time followed by a checkpoint that gets through.
  let tries = 0;
  const parts = await launchParts(bed.database.url, {
    workflows: [run],
    requeues: POLICY,
    observer: (text) => {
      if (!text.includes('checkpoint_one')) return undefined;
      const isFree = ++tries % 13 === 0;
      return isFree ? undefined : bump(workflowId);
    },
  });
  await parts.engine.start(workflowDefinition(run), { workflowId }, []);
  expect(await parts.result(workflowId)).toBe(5);
});

test('a workflow that cannot even be given up for conflicts is ended as stuck as well', async () => {
  const workflowId = 'not released';
  const run = defineWorkflow('not released', () => runStep('work', () => Promise.resolve()));
  const parts = await launchParts(bed.database.url, {
    workflows: [run],
    requeues: { ...POLICY, maxRequeues: 1 },
    observer: (text) => (/checkpoint_one|release_workflow/.test(text) ? bump(workflowId) : undefined),
  });
  await parts.engine.start(workflowDefinition(run), { workflowId }, []);
  await expect(parts.result(workflowId)).rejects.toMatchObject({ code: 'WORKFLOW_STUCK' });
  expect(await statusRow(bed.sql, workflowId)).toMatchObject({ status: 'ERROR', epoch: 1, owner_token: null });
});

function workflowDefinition(run: unknown): WorkflowDefinition {
  const definition = definitionOf(run);
  if (definition?.kind !== 'workflow') throw new TypeError('Not a workflow.');
  return definition;
}

/** Has the database note how long each requeue put it off, in whole milliseconds: whoever looks at the row may come too late. */
async function recordDelays(workflowId: string): Promise<() => Promise<number[]>> {
  await bed.sql.query(
    `CREATE TABLE requeue_delay (workflow_id text, epoch bigint, ms float8);
     CREATE FUNCTION note_delay() RETURNS trigger LANGUAGE plpgsql AS $$
       BEGIN
         INSERT INTO public.requeue_delay
           VALUES (NEW.workflow_id, NEW.epoch, extract(epoch FROM NEW.wake_at - NEW.updated_at) * 1000);
         RETURN NULL;
       END $$;
     CREATE TRIGGER note_delay AFTER UPDATE ON holdfast.workflow_status
       FOR EACH ROW WHEN (NEW.status = 'DELAYED' AND OLD.status <> 'DELAYED') EXECUTE FUNCTION note_delay()`,
  );
  return async () => {
    const { rows } = await bed.sql.query<{ ms: number }>(
      'SELECT ms FROM requeue_delay WHERE workflow_id = $1 ORDER BY epoch',
      [workflowId],
    );
    return rows.map(({ ms }) => ms);
  };
}
