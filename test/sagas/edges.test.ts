import { setTimeout as pause } from 'node:timers/promises';
import type { Client } from 'pg';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import {
  defineWorkflow,
  InvalidArgumentError,
  type Holdfast,
  NonRetryableError,
  onRollback,
  outbox,
  runStep,
  runTransaction,
  sleep,
  Step,
  Transaction,
  transaction,
  Workflow,
} from '../../src/index.js';
import { createBed, gate, waitUntil, type Bed } from '../support/launch.js';

// What a rollback has to know, and what must not happen beside it: children, transactions and steps that are under way, code that
// takes its time, and what people record by hand.

const ledger: string[] = [];
const note = (entry: string): Promise<void> => {
  ledger.push(entry);
  return Promise.resolve();
};

let scenario: (workflowId: string) => Promise<unknown> = () => Promise.resolve();
const run = defineWorkflow('run', (id: string): Promise<unknown> => scenario(id));
const waiting = defineWorkflow('waiting', async (): Promise<void> => {
  await note('child');
  await sleep('1h');
});

let bed: Bed;
let holdfast: Holdfast;
let desk: Desk;
beforeAll(async () => {
  bed = await createBed();
  desk = new Desk('ada');
  holdfast = await bed.launch({
    workflows: [run, waiting, { name: 'desk', instance: desk }],
    queues: [{ name: 'closed' }, { name: 'narrow', concurrency: 1 }],
  });
  await holdfast.queues.pause('closed');
});
afterAll(() => bed.close());
beforeEach(() => {
  ledger.length = 0;
});

const compensated = (name: string, body: () => Promise<unknown> = () => note(name)): Promise<unknown> =>
  runStep(name, body, { compensate: () => note(`undo ${name}`) });

async function kindsOf(workflowId: string): Promise<string[]> {
  return (await holdfast.admin.steps(workflowId)).items.map(({ kind }) => kind);
}

/** As after a crash: whoever claims it next replays it. */
async function takeAway(workflowId: string): Promise<void> {
  await bed.sql.query(
    `UPDATE holdfast.workflow_status
        SET status = 'ENQUEUED', owner_token = NULL, record_version = record_version + 1 WHERE workflow_id = $1`,
    [workflowId],
  );
}

test('resuming a blocked rollback does not bring back the children that its cancel has cancelled', async () => {
  scenario = async () => {
    await runStep('sell', () => note('sell'), {
      compensate: { run: () => note('undo').then(() => Promise.reject(new NonRetryableError('no'))) },
    });
    await holdfast.enqueue(waiting, { workflowId: 'child of resumed', queue: 'closed' });
    await sleep('1h');
  };
  const handle = await holdfast.start(run, { workflowId: 'resumed' }, 'resumed');
  await waitUntil(async () => (await kindsOf('resumed')).includes('sleep'), 'it sleeps');
  await handle.cancel({ compensate: true });
  await waitUntil(async () => (await handle.status()) === 'BLOCKED', 'it is blocked');
  const child = holdfast.handle('child of resumed');
  expect(await child.status()).toBe('CANCELLED');
  await holdfast.admin.resume('resumed');
  await waitUntil(async () => (await handle.status()) === 'BLOCKED', 'it is blocked again');
  expect(await child.status()).toBe('CANCELLED');
  await holdfast.admin.rewind('resumed', { toStep: 5 });
  await waitUntil(async () => (await handle.status()) === 'BLOCKED', 'it is blocked again');
  expect(await child.status()).toBe('CANCELLED');
});

test('a transaction that commits while its workflow fails is undone', async () => {
  await bed.sql.query(`
    CREATE TABLE sale (id integer);
    CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.5); RETURN NULL; END $$;
    CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON sale DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION slow();`);
  const inserted = gate();
  scenario = async () => {
    const sold = runTransaction(
      'sell',
      async () => {
        await transaction<Client>().client.query('INSERT INTO sale VALUES (1)');
        inserted.open();
      },
      { compensate: () => note('undo sell') },
    );
    await Promise.all([sold, inserted.opened.then(() => pause(100)).then(() => Promise.reject(new Error('enough')))]);
  };
  const handle = await holdfast.start(run, { workflowId: 'transaction' }, 'transaction');
  await expect(handle.result()).rejects.toThrow('enough');
  const { rowCount } = await bed.sql.query('SELECT FROM sale');
  expect(ledger).toEqual(rowCount === 0 ? [] : ['undo sell']);
});

class Desk {
  readonly #by: string;

  constructor(by: string) {
    this.#by = by;
  }

  @Step({ compensate: 'giveBack' })
  async take(seat: string): Promise<string> {
    await note(`${this.#by} takes ${seat}`);
    return `T-${seat}`;
  }

  async giveBack(ticket: string, seat: string): Promise<void> {
    await outbox.add('seats', { free: seat }, { key: seat });
    await note(`${this.#by} gives back ${ticket}`);
  }

  @Workflow()
  async sell(seat: string): Promise<void> {
    await this.take(seat);
    throw new Error(`no ${seat}`);
  }
}

test('in a queue with one slot: methods of an instance undo what it did, with its fields; what they add to the outbox is there once', async () => {
  const handles = [];
  for (const seat of ['1A', '1B']) {
    // eslint-disable-next-line @typescript-eslint/unbound-method -- named here, not called
    handles.push(await holdfast.enqueue(desk.sell, { queue: 'narrow', workflowId: seat, instance: 'desk' }, seat));
  }
  for (const handle of handles) await expect(handle.result()).rejects.toThrow(`no ${handle.workflowId}`);
  expect(ledger.toSorted()).toEqual(
    ['1A', '1B'].flatMap((seat) => [`ada gives back T-${seat}`, `ada takes ${seat}`]).toSorted(),
  );
  const { rows } = await bed.sql.query(
    "SELECT event_key FROM holdfast.outbox_event WHERE topic = 'seats' ORDER BY event_key",
  );
  expect(rows).toEqual([{ event_key: '1A' }, { event_key: '1B' }]);
});

class Till {
  @Transaction({ compensate: 'giveBack' })
  static async take(cents: number): Promise<string> {
    await transaction<Client>().client.query('INSERT INTO till VALUES ($1)', [cents]);
    return 'T-1';
  }

  static giveBack(receipt: string, cents: number): Promise<void> {
    return note(`give back ${receipt} ${String(cents)}`);
  }
}

test('a transaction is undone like a step, with its result and arguments; bad use is refused', async () => {
  await bed.sql.query('CREATE TABLE till (cents integer)');
  scenario = async () => {
    await Till.take(5);
    const sell = runTransaction('sell', () => Promise.resolve('S-1'), {
      compensate: (receipt: string) => note(`undo ${receipt}`),
    });
    await sell;
    throw new Error('enough');
  };
  const handle = await holdfast.start(run, { workflowId: 'till' }, 'till');
  await expect(handle.result()).rejects.toThrow('enough');
  expect(ledger).toEqual(['undo S-1', 'give back T-1 5']);
  expect((await holdfast.admin.rollback('till'))?.compensations.map(({ state }) => state)).toEqual(['done', 'done']);

  expect(() => runTransaction('no', () => Promise.resolve(), { compensate: 'giveBack' })).toThrow(InvalidArgumentError);
  expect(() => {
    class Wrong {
      @Transaction({ compensate: 'missing' })
      static async take(): Promise<void> {
        return Promise.resolve();
      }
    }
    return Wrong;
  }).toThrow(expect.objectContaining({ code: 'REGISTRATION_INVALID' }) as Error);
});

test('the "compensate" of a transaction is looked for before its body runs', async () => {
  scenario = () =>
    runTransaction('sell', () => note('sell'), {
      compensate: waiting as never,
    });
  const handle = await holdfast.start(run, { workflowId: 'no method' }, 'no method');
  await waitUntil(async () => (await handle.status()) === 'BLOCKED', 'it is blocked');
  expect(ledger).toEqual([]);
});

test('an open step that the code comes to after something that is not durable is asked for, and undone', async () => {
  const silent = gate();
  scenario = async () => {
    await runStep('first', () => note('first'));
    await pause(200);
    await runStep('charge', () => note('charge').then(() => silent.opened), {
      compensate: () => note('undo charge'),
      reconcile: () => Promise.resolve({ happened: true, result: undefined }),
    });
  };
  const handle = await holdfast.start(run, { workflowId: 'late' }, 'late');
  await waitUntil(() => ledger.includes('charge'), 'it charges');
  await handle.cancel({ compensate: true });
  await expect(handle.result()).rejects.toMatchObject({ code: 'WORKFLOW_CANCELLED' });
  expect(ledger).toEqual(['first', 'charge', 'undo charge']);
  silent.open();
});

test('one whose deadline has passed when it is taken over is not ended before the code has come to its open steps', async () => {
  const silent = gate();
  scenario = async () => {
    await runStep('first', () => note('first'));
    await pause(200);
    await runStep('charge', () => note('charge').then(() => silent.opened), {
      compensate: () => note('undo charge'),
      reconcile: () => Promise.resolve({ happened: true, result: undefined }),
    });
  };
  const handle = await holdfast.start(run, { workflowId: 'overdue', timeout: '1h' }, 'overdue');
  await waitUntil(() => ledger.includes('charge'), 'it charges');
  await bed.sql.query(`UPDATE holdfast.workflow_status SET deadline = now() WHERE workflow_id = 'overdue'`);
  await takeAway('overdue');
  await expect(handle.result()).rejects.toMatchObject({ code: 'WORKFLOW_TIMEOUT' });
  expect(ledger).toEqual(['first', 'charge', 'undo charge']);
  silent.open();
});

test('a deadline that passes in the middle of a replay leaves the whole record to be undone', async () => {
  let pauseMs = 0;
  scenario = async () => {
    await compensated('one');
    const ms = pauseMs;
    pauseMs = 0;
    await pause(ms);
    await compensated('two');
    await sleep('1h');
  };
  const handle = await holdfast.start(run, { workflowId: 'slow', timeout: '1h' }, 'slow');
  await waitUntil(async () => (await kindsOf('slow')).includes('sleep'), 'it sleeps');
  pauseMs = 6_000;
  await bed.sql.query(`UPDATE holdfast.workflow_status SET deadline = now() WHERE workflow_id = 'slow'`);
  await takeAway('slow');
  await expect(handle.result()).rejects.toMatchObject({ code: 'WORKFLOW_TIMEOUT' });
  expect(ledger).toEqual(['one', 'two', 'undo two', 'undo one']);
}, 40_000);

test('code that returns while a step is waited for after the deadline does not end the workflow as if in time', async () => {
  const charged = gate();
  const plain = gate();
  scenario = async () => {
    onRollback(() => note('undo'));
    void compensated('charge', () => charged.opened);
    await runStep('plain', () => plain.opened);
    return 'in time';
  };
  const handle = await holdfast.start(run, { workflowId: 'frozen', timeout: 1_000 }, 'frozen');
  await pause(1_500);
  plain.open();
  await pause(200);
  charged.open();
  await expect(handle.result()).rejects.toMatchObject({ code: 'WORKFLOW_TIMEOUT' });
  expect(ledger).toEqual(['undo charge', 'undo']);
});

test.each([
  ['with something to undo', () => compensated('one'), ['one', 'undo one']],
  ['with nothing to undo', () => runStep('one', () => note('one')), ['one']],
])(
  'a takeover after the deadline times out, though all that the code asks for is on record: %s',
  async (what, step, expected) => {
    const held = gate();
    const arrived = gate();
    let isHeld = true;
    scenario = async () => {
      await step();
      if (isHeld) {
        arrived.open();
        await held.opened;
      }
      return 'too late';
    };
    const workflowId = `overdue ${what}`;
    const handle = await holdfast.start(run, { workflowId, timeout: '1h' }, workflowId);
    await arrived.opened;
    isHeld = false;
    await bed.sql.query(`UPDATE holdfast.workflow_status SET deadline = now() WHERE workflow_id = $1`, [workflowId]);
    await takeAway(workflowId);
    await expect(handle.result()).rejects.toMatchObject({ code: 'WORKFLOW_TIMEOUT' });
    expect(ledger).toEqual(expected);
    held.open();
  },
);

test('a step that may have happened is not to be run again in a rollback: that is refused', async () => {
  const silent = gate();
  scenario = () => compensated('charge', () => silent.opened);
  const handle = await holdfast.start(run, { workflowId: 'retry' }, 'retry');
  await waitUntil(async () => (await kindsOf('retry')).length === 1, 'it charges');
  await handle.cancel({ compensate: true });
  await waitUntil(async () => (await handle.status()) === 'BLOCKED', 'it is blocked');
  await expect(holdfast.admin.repairStep('retry', { seq: 0, repair: { retry: true } })).rejects.toMatchObject({
    code: 'WORKFLOW_STATE',
  });
  await holdfast.admin.repairStep('retry', { seq: 0, repair: { happened: true, result: 'charged' } });
  await holdfast.admin.resume('retry');
  await expect(handle.result()).rejects.toMatchObject({ code: 'WORKFLOW_CANCELLED' });
  expect(ledger).toEqual(['undo charge']);
  silent.open();
});
