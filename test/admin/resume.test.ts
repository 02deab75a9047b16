import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type AdminBench, openAdminBench } from './support/admin-bench.js';
import { type Owned, Protocol } from './support/protocol.js';

let bench: AdminBench;
let protocol: Protocol;
beforeAll(async () => {
  bench = await openAdminBench();
  protocol = await Protocol.register(bench);
});
afterAll(() => bench.close());

async function claimed(workflowId: string): Promise<Owned> {
  const owned = await protocol.claim(workflowId);
  if (owned === null) throw new Error(`"${workflowId}" cannot be claimed.`);
  return owned;
}

describe('cancel and resume', () => {
  test('C13 cancelling a finished workflow changes nothing', async () => {
    const owned = await protocol.start('finished');
    await protocol.complete(owned);
    const before = await bench.snapshot();
    expect(await bench.admin.cancel('finished')).toMatchObject({ result: 'unchanged', statusAfter: 'SUCCESS' });
    expect(await bench.snapshot()).toBe(before);
  });

  test('C13 cancelled after the last step, resumed: it finishes without running that step again', async () => {
    const owned = await protocol.start('last');
    await protocol.checkpoint(owned, 0);
    await bench.admin.cancel('last');
    expect(await protocol.complete(owned)).toBe('lost');
    await bench.admin.resume('last');
    const next = await claimed('last');
    expect((await bench.admin.steps('last')).items).toMatchObject([{ seq: 0, complete: true, epoch: 1 }]);
    expect(await protocol.complete(next)).toBeNull();
    expect(await bench.admin.get('last')).toMatchObject({ status: 'SUCCESS', epoch: 2 });
  });

  test('C14 C19 after resume a step gets its true result; the one of the cancelled run is discarded', async () => {
    const owned = await protocol.start('true result');
    await bench.admin.cancel('true result');
    await bench.admin.resume('true result');
    const next = await claimed('true result');
    expect(await protocol.checkpoint(owned, 0, { output: 'old' })).toBe('lost');
    expect(await protocol.checkpoint(next, 0, { output: 'new' })).toBeNull();
    expect((await bench.admin.steps('true result', { payload: true })).items).toMatchObject([
      { output: { readable: true, value: 'new' } },
    ]);
  });

  test('C16 the late outcome of a cancelled run does not replace that of the run after it', async () => {
    const owned = await protocol.start('late outcome');
    await bench.admin.cancel('late outcome');
    await bench.admin.resume('late outcome');
    await protocol.complete(await claimed('late outcome'));
    const before = await bench.snapshot();
    expect(await protocol.complete(owned, 'ERROR')).toBe('lost');
    expect(await bench.snapshot()).toBe(before);
  });

  test('C1 a dead letter that is resumed has a fresh budget, and can finish', async () => {
    await protocol.inStatus('spent', 'DEAD_LETTER');
    expect(await bench.admin.get('spent')).toMatchObject({
      attempts: 1,
      maxAttempts: 1,
      attention: { code: 'DEAD_LETTER' },
    });
    await bench.admin.resume('spent');
    expect(await bench.admin.get('spent')).toMatchObject({ attempts: 0, attention: null });
    await protocol.complete(await claimed('spent'));
    expect((await bench.admin.get('spent')).status).toBe('SUCCESS');
  });

  test('C3 a late dead-letter decision does not hit a row whose budget was renewed meanwhile', async () => {
    const owned = await protocol.start('renewed', { maxAttempts: 1 });
    await protocol.release(owned, 'ENQUEUED');
    let claim: Promise<Owned | null> = Promise.resolve(null);
    await bench.driver.transaction(async (transaction) => {
      // Holds the row while the claim decides.
      await transaction.query(`UPDATE holdfast.workflow_status SET attempts = 0 WHERE workflow_id = 'renewed'`);
      claim = protocol.claim('renewed');
      expect(await claim).toBeNull();
    });
    expect((await bench.admin.get('renewed')).status).toBe('ENQUEUED');
    expect(await protocol.claim('renewed')).not.toBeNull();
  });

  test('C20 a sleep keeps its absolute end over cancel and resume; the deadline begins anew', async () => {
    await protocol.inStatus('asleep', 'PENDING');
    const [sleeping] = (await bench.admin.steps('asleep', { limit: 10 })).items.slice(3);
    const before = await bench.admin.get('asleep');
    await bench.admin.cancel('asleep');
    await bench.admin.resume('asleep');
    const after = await bench.admin.get('asleep');
    expect((await bench.admin.steps('asleep')).items[3]?.wakeAt).toEqual(sleeping?.wakeAt);
    expect(after.deadline?.getTime()).toBeGreaterThan(before.deadline?.getTime() ?? Infinity);
  });

  test('C36 a delay ends with cancel: what is resumed can be claimed at once', async () => {
    await protocol.inStatus('delayed', 'DELAYED');
    expect(await protocol.claim('delayed')).toBeNull();
    await bench.admin.cancel('delayed');
    expect(await bench.admin.get('delayed')).toMatchObject({ status: 'CANCELLED', wakeAt: null });
    await bench.admin.resume('delayed');
    expect(await protocol.claim('delayed')).not.toBeNull();
  });

  test('executors and waiters are told: control and outcome on cancel, control and work on resume', async () => {
    const heard: string[] = [];
    let isListening = false;
    const channels = ['control', 'outcome', 'work'].map((topic) => `holdfast.${topic}`);
    const stream = bench.driver.listen(channels, {
      onListening: () => (isListening = true),
      onLost: () => undefined,
      onNotification: (channel, payload) => heard.push(`${channel} ${payload}`),
    });
    await expect.poll(() => isListening).toBe(true);
    await protocol.inStatus('told', 'PENDING');
    await bench.admin.cancel('told');
    await expect.poll(() => heard).toEqual(['holdfast.control told', 'holdfast.outcome ["told"]']);
    heard.length = 0;
    await bench.admin.resume('told');
    await expect.poll(() => heard).toEqual(['holdfast.control told', 'holdfast.work ']);
    await stream.close();
  });
});
