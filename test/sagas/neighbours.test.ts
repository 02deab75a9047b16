import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import {
  defineWorkflow,
  onRollback,
  receive,
  runStep,
  sleep,
  Step,
  Workflow,
  type CompensateOption,
  type Holdfast,
  type Reconciliation,
} from '../../src/index.js';
import { createBed, gate, waitUntil, type Bed } from '../support/launch.js';

let bed: Bed;
let holdfast: Holdfast;
const ledger: string[] = [];
let scenario: () => Promise<unknown> = () => Promise.resolve();
let childScenario: () => Promise<unknown> = () => Promise.resolve();
const run = defineWorkflow('run', (): Promise<unknown> => scenario());
const child = defineWorkflow('child', (): Promise<unknown> => childScenario());
beforeAll(async () => {
  bed = await createBed();
  holdfast = await bed.launch({
    workflows: [run, child],
    suspendAfter: 50,
    pollInterval: 50,
    queues: [{ name: 'paused', concurrency: 1 }],
  });
});
afterAll(() => bed.close());
beforeEach(() => {
  ledger.length = 0;
});

const note = (entry: string): Promise<string> => {
  ledger.push(entry);
  return Promise.resolve(entry);
};
const act = (name: string): Promise<string> =>
  runStep(name, () => note(name), { compensate: (result) => note(`undo ${result}`) });
const start = (workflowId: string) => holdfast.start(run, { workflowId });
const statusIs = (workflowId: string, status: string) =>
  waitUntil(async () => (await holdfast.admin.get(workflowId)).status === status, `${workflowId} is ${status}`);
const statesOf = async (workflowId: string) =>
  (await holdfast.admin.rollback(workflowId))?.compensations.map(({ name, state }) => `${name} ${state}`);

test('parallel steps are undone in reverse of the order in which they ended; one in flight is waited for', async () => {
  const slow = gate();
  scenario = async () => {
    await Promise.all([
      runStep('slow', () => slow.opened.then(() => note('slow')), { compensate: () => note('undo slow') }),
      act('quick'),
      act('quick').then(() => Promise.reject(new Error('one fails'))),
    ]);
  };
  const handle = await start('parallel');
  await waitUntil(() => ledger.length === 2, 'two have ended');
  slow.open();
  await expect(handle.result()).rejects.toThrow('one fails');
  expect(ledger).toEqual(['quick', 'quick', 'slow', 'undo slow', 'undo quick', 'undo quick']);
});

test('cancel with compensation by status: SUSPENDED, BLOCKED, DELAYED, ENQUEUED, and what has ended', async () => {
  scenario = async () => {
    await act('a');
    await receive('never');
  };
  await start('suspended');
  await statusIs('suspended', 'SUSPENDED');
  expect(await holdfast.admin.cancel('suspended', { compensate: true })).toMatchObject({ statusAfter: 'ENQUEUED' });
  await statusIs('suspended', 'CANCELLED');
  expect(ledger).toEqual(['a', 'undo a']);
  expect(await holdfast.admin.cancel('suspended', { compensate: true })).toMatchObject({ result: 'unchanged' });

  await holdfast.enqueue(run, { workflowId: 'delayed', delay: '1h' });
  expect(await holdfast.admin.cancel('delayed', { compensate: true })).toMatchObject({ statusAfter: 'CANCELLED' });
  expect(await holdfast.admin.rollback('delayed')).toBeNull();

  ledger.length = 0;
  await start('blocked');
  await statusIs('blocked', 'SUSPENDED');
  await bed.sql.query(
    `UPDATE holdfast.workflow_status SET status = 'BLOCKED', attention = 'TEST' WHERE workflow_id = 'blocked'`,
  );
  const results = await holdfast.admin.cancel(['blocked', 'nowhere'], { compensate: true });
  expect(results.map(({ ok }) => ok)).toEqual([true, false]);
  await statusIs('blocked', 'CANCELLED');
  expect(ledger).toEqual(['a', 'undo a']);
});

test('a step whose outcome is unknown is asked for first; what did not happen is not undone', async () => {
  for (const answer of ['happened', 'not', 'nobody'] as const) {
    ledger.length = 0;
    const body = gate();
    const begun = gate();
    const reconcile = (): Promise<Reconciliation<string>> =>
      Promise.resolve(answer === 'happened' ? { happened: true, result: 'found' } : { didNotHappen: true });
    scenario = async () => {
      await act('before');
      await runStep(
        'charge',
        async () => {
          begun.open();
          await body.opened;
          return 'late';
        },
        { compensate: (result: string) => note(`undo ${result}`), ...(answer !== 'nobody' && { reconcile }) },
      );
    };
    const workflowId = `unknown ${answer}`;
    await start(workflowId);
    await begun.opened;
    await holdfast.admin.cancel(workflowId, { compensate: true });
    if (answer === 'nobody') {
      await statusIs(workflowId, 'BLOCKED');
      expect((await holdfast.admin.get(workflowId)).attention).toMatchObject({ code: 'OUTCOME_UNKNOWN' });
      expect(ledger).toEqual(['before']);
      await holdfast.admin.skipCompensation(workflowId, { seq: 3, reason: 'refunded at the counter' });
      await holdfast.admin.resume(workflowId);
    }
    await statusIs(workflowId, 'CANCELLED');
    expect(ledger.at(-1)).toBe('undo before');
    if (answer === 'happened') expect(ledger).toContain('undo found');
    if (answer === 'not') {
      expect(ledger).toEqual(['before', 'undo before']);
      expect(await statesOf(workflowId)).toEqual(['charge not-needed', 'before done']);
    }
    body.open();
  }
});

test('code that catches everything and goes on, loops, or has a finally comes to rest: none of it is run half', async () => {
  let cleanUps = 0;
  scenario = async () => {
    try {
      await act('a');
      for (;;) await receive('never').catch(() => undefined);
    } finally {
      cleanUps += 1;
      await act('b');
    }
  };
  await start('catches');
  await statusIs('catches', 'SUSPENDED');
  await holdfast.admin.cancel('catches', { compensate: true });
  await statusIs('catches', 'CANCELLED');
  expect(ledger).toEqual(['a', 'undo a']);
  expect(cleanUps).toBe(0);
});

test('code that takes another path is found; a plain cancel during the rollback ends it at once', async () => {
  let path = 'recorded';
  scenario = async () => {
    await act(path);
    await receive('never');
  };
  await start('other path');
  await statusIs('other path', 'SUSPENDED');
  path = 'other';
  await holdfast.admin.cancel('other path', { compensate: true });
  await statusIs('other path', 'BLOCKED');
  expect((await holdfast.admin.get('other path')).attention).toMatchObject({ code: 'NONDETERMINISM' });
  path = 'recorded';
  await holdfast.admin.resume('other path');
  await statusIs('other path', 'CANCELLED');
  expect(ledger).toEqual(['recorded', 'undo recorded']);

  const undo = gate();
  scenario = async () => {
    onRollback(() => undo.opened);
    await act('a');
    throw new Error('fails');
  };
  await start('cancelled twice');
  await waitUntil(async () => (await statesOf('cancelled twice'))?.includes('a done') === true, 'it rolls back');
  expect(await holdfast.admin.cancel('cancelled twice', { compensate: true })).toMatchObject({ result: 'unchanged' });
  await holdfast.admin.cancel('cancelled twice');
  expect((await holdfast.admin.get('cancelled twice')).status).toBe('CANCELLED');
  expect(await statesOf('cancelled twice')).toEqual(['a done', 'onRollback pending']);
  undo.open();
});

test('C68 a fork begins before the rollback; a rewind to before it takes it away, one inside it repeats compensations', async () => {
  scenario = async () => {
    await act('a');
    throw new Error('fails');
  };
  await expect((await start('rewound')).result()).rejects.toThrow('fails');
  await expect(holdfast.admin.fork('rewound', { fromStep: 2 })).rejects.toMatchObject({ code: 'STEP_NOT_FOUND' });
  await holdfast.admin.rewind('rewound', { toStep: 2 });
  await statusIs('rewound', 'ERROR');
  expect(ledger).toEqual(['a', 'undo a', 'undo a']);
  scenario = () => act('a');
  await holdfast.admin.rewind('rewound', { toStep: 1 });
  await statusIs('rewound', 'SUCCESS');
  expect(await holdfast.admin.rollback('rewound')).toBeNull();
  const { workflowId } = await holdfast.admin.fork('rewound', { fromStep: 1 });
  await statusIs(workflowId, 'SUCCESS');
});

test('children that end with their parent are cancelled with compensation too; a failed child is rolled back before its parent knows', async () => {
  childScenario = async () => {
    await act('child');
    await sleep('1h');
  };
  scenario = async () => {
    await act('parent');
    await child();
  };
  await start('family');
  await waitUntil(() => ledger.length === 2, 'both have done something');
  await waitUntil(
    async () => (await holdfast.admin.list({ parentId: 'family' })).items[0]?.status === 'SUSPENDED',
    'it sleeps',
  );
  await holdfast.admin.cancel('family', { compensate: true });
  await statusIs('family', 'CANCELLED');
  await waitUntil(
    async () => (await holdfast.admin.list({ parentId: 'family' })).items[0]?.status === 'CANCELLED',
    'too',
  );
  expect(ledger.slice(2).sort()).toEqual(['undo child', 'undo parent']);

  ledger.length = 0;
  childScenario = async () => {
    await act('child');
    throw new Error('child fails');
  };
  await expect((await start('second family')).result()).rejects.toThrow('child fails');
  expect(ledger).toEqual(['parent', 'child', 'undo child', 'undo parent']);
});

test('a workflow that becomes a dead letter during its rollback goes on with it after a resume', async () => {
  let ends = false;
  scenario = async () => {
    onRollback(() => (ends ? note('undone') : new Promise(() => undefined)));
    await act('a');
    throw new Error('fails');
  };
  await start('dead');
  await waitUntil(async () => (await statesOf('dead'))?.includes('a done') === true, 'it rolls back');
  await bed.sql.query(`UPDATE holdfast.workflow_status SET max_attempts = attempts WHERE workflow_id = 'dead'`);
  await bed.launch({ workflows: [run, child] });
  await bed.expireLease((await holdfast.admin.get('dead')).executorId ?? '');
  await statusIs('dead', 'DEAD_LETTER');
  ends = true;
  await holdfast.admin.resume('dead');
  await statusIs('dead', 'ERROR');
  expect(ledger).toEqual(['a', 'undo a', 'undone']);
});

test('a suspended workflow whose deadline passes is rolled back', async () => {
  scenario = async () => {
    await act('a');
    await receive('never');
  };
  const handle = await holdfast.start(run, { workflowId: 'deadline', timeout: '1h' });
  await statusIs('deadline', 'SUSPENDED');
  await bed.sql.query(
    `UPDATE holdfast.workflow_status SET deadline = clock_timestamp(), wake_at = clock_timestamp() WHERE workflow_id = 'deadline'`,
  );
  await expect(handle.result()).rejects.toMatchObject({ code: 'WORKFLOW_TIMEOUT' });
  expect(ledger).toEqual(['a', 'undo a']);
});

test('bad use is refused when registering, with a typed error; wrong types do not compile', async () => {
  const refused = (compensate: CompensateOption) => {
    class Bad {
      @Step({ compensate: compensate as string })
      static async act(): Promise<number> {
        return Promise.resolve(1);
      }
      @Workflow()
      static async flow(): Promise<void> {
        return Promise.resolve();
      }
    }
    return Bad;
  };
  expect(() => refused('nowhere')).toThrow(expect.objectContaining({ code: 'REGISTRATION_INVALID' }));
  expect(() => refused({ run: 'nowhere' })).toThrow(expect.objectContaining({ code: 'REGISTRATION_INVALID' }));
  expect(() => refused(7 as never)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }));
  expect(() => refused({ run: 'act', retry: 1 } as never)).toThrow(
    expect.objectContaining({ code: 'INVALID_ARGUMENT' }),
  );
  await expect(bed.launch({ workflows: [refused('flow')] })).rejects.toMatchObject({ code: 'REGISTRATION_INVALID' });
  expect(() => {
    onRollback(() => Promise.resolve());
  }).toThrow(expect.objectContaining({ code: 'OUTSIDE_WORKFLOW' }));
  class Types {
    @Step({ compensate: (result: number, argument: string) => Promise.resolve(`${String(result)} ${argument}`) })
    static async fits(argument: string): Promise<number> {
      return Promise.resolve(argument.length);
    }
    // @ts-expect-error the result of the step is a number
    @Step({ compensate: (result: string) => Promise.resolve(result) })
    static async doesNotFit(argument: string): Promise<number> {
      return Promise.resolve(argument.length);
    }
  }
  expect(await Types.fits('ab')).toBe(2);
});
