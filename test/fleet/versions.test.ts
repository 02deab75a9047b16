import { execFile } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Catalog, type WorkflowSource } from '../../src/engine/catalog.js';
import { versionOf } from '../../src/engine/source-version.js';
import { defineWorkflow, Holdfast, patched, runStep, sourceVersion, Step, Workflow } from '../../src/index.js';
import { ROOT } from '../docs/markdown.js';
import { createBed, gate, waitUntil, type Bed } from '../support/launch.js';

let bed: Bed;
beforeAll(async () => {
  bed = await createBed();
});
afterAll(() => bed.close());

describe('an app version made of the source', () => {
  const of = (...workflows: WorkflowSource[]): string => versionOf(new Catalog(workflows).sources);
  const one = defineWorkflow('one', () => Promise.resolve(1));
  const two = defineWorkflow('two', () => Promise.resolve(2));

  test('is the same in other processes, from another directory, in another order of registration', async () => {
    const fixture = join(ROOT, 'test', 'fleet', 'fixtures', 'source-version.ts');
    const tsx = join(ROOT, 'node_modules', 'tsx', 'dist', 'loader.mjs');
    const run = async (cwd: string, ...order: string[]): Promise<string> =>
      (await promisify(execFile)(process.execPath, ['--import', tsx, fixture, ...order], { cwd })).stdout;
    const [first, second, other] = await Promise.all([
      run(ROOT, 'shop', 'mail', 'count'),
      run(tmpdir(), 'count', 'shop', 'mail'),
      run(ROOT, 'shop', 'mail'),
    ]);
    expect(first).toMatch(/^source-[0-9a-f]{16}\n$/);
    expect(second).toBe(first);
    expect(other).not.toBe(first);
  });

  test('changes with the body of a workflow, or of a step of its class, and with nothing else', () => {
    const shop = (price: number, body: () => Promise<number>): WorkflowSource => {
      class Shop {
        @Step({ retries: { maxAttempts: price } })
        static charge(): Promise<number> {
          return body();
        }
        @Workflow()
        static order(): Promise<number> {
          return Shop.charge();
        }
      }
      return Shop;
    };
    expect(of(one, two)).toBe(of(two, one));
    expect(of(one)).not.toBe(of(two));
    expect(of(defineWorkflow('one', () => Promise.resolve(1)))).toBe(of(one));
    expect(of(defineWorkflow('one', () => Promise.resolve(3)))).not.toBe(of(one));
    expect(of(shop(1, () => Promise.resolve(1)))).toBe(of(shop(2, () => Promise.resolve(2))));

    class Before {
      @Step()
      static charge(): Promise<number> {
        return Promise.resolve(7);
      }
      @Workflow()
      static order(): Promise<number> {
        return Before.charge();
      }
    }
    class After {
      @Step()
      static charge(): Promise<number> {
        return Promise.resolve(8);
      }
      @Workflow()
      static order(): Promise<number> {
        return Before.charge();
      }
    }
    expect(of(After)).not.toBe(of(Before));
  });

  test('does not depend on how lines end', () => {
    const text = (source: string) => versionOf([{ kind: 'also', name: '', text: source }]);
    expect(text('a\r\nb')).toBe(text('a\nb'));
    expect(text('a\nb')).not.toBe(text('a b'));
  });

  test('takes in what is given besides: functions, classes, texts', async () => {
    const total = (cents: number) => cents * 2;
    class Payments {
      readonly currency = 'EUR';
    }
    const launched = async (version: ReturnType<typeof sourceVersion>): Promise<string> => {
      await using holdfast = await bed.launch({ workflows: [one], appVersion: version });
      return holdfast.appVersion;
    };
    const versions = [
      await launched(sourceVersion()),
      await launched(sourceVersion(total)),
      await launched(sourceVersion(Payments)),
      await launched(sourceVersion('release 7')),
      await launched(sourceVersion(two)),
    ];
    expect(versions[0]).toBe(of(one));
    expect(new Set(versions).size).toBe(5);
    const { rows } = await bed.sql.query<{ app_version: string }>('SELECT app_version FROM holdfast.executor');
    expect(rows.map((row) => row.app_version)).toEqual(expect.arrayContaining(versions));
  });

  test('is refused for a function whose source cannot be read, and for something else than a version', async () => {
    const bound = defineWorkflow('bound', (async (n: number) => Promise.resolve(n)).bind(undefined));
    await expect(Holdfast.launch({ workflows: [bound], appVersion: sourceVersion() })).rejects.toMatchObject({
      code: 'REGISTRATION_INVALID',
    });
    await expect(Holdfast.launch({ workflows: [one], appVersion: { from: 'source' } as never })).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
    });
  });
});

describe('C67 two releases at once', () => {
  const bodies: string[] = [];
  const mark = (name: string): Promise<string> =>
    runStep(name, () => {
      bodies.push(name);
      return Promise.resolve(name);
    });
  /** Two releases of one workflow. Between its steps it waits for the test. */
  function releases(name: string) {
    const [reached, leave] = [gate(), gate()];
    const pause = async (): Promise<void> => {
      reached.open();
      await leave.opened;
    };
    const old = defineWorkflow(name, async (): Promise<string[]> => {
      const first = await mark('old first');
      await pause();
      return [first, await mark('old second')];
    });
    const changed = defineWorkflow(name, async (): Promise<string[]> => {
      const first = await mark('new first');
      await pause();
      return [first, await mark('new second')];
    });
    const patching = defineWorkflow(name, async (): Promise<string[]> => {
      const first = (await patched('renamed')) ? await mark('new first') : await mark('old first');
      await pause();
      return [first, await mark('new second')];
    });
    return { old, changed, patching, reached, leave };
  }

  test('each workflow is finished by the release that began it, or waits for it visibly', async () => {
    const { old, changed, reached, leave } = releases('pinned');
    const one = await bed.launch({ workflows: [old], appVersion: 'one', executorId: 'release one' });
    const two = await bed.launch({ workflows: [changed], appVersion: 'two' });
    await one.start(old, { workflowId: 'pinned' });
    await reached.opened;
    // The only executor of the first release goes; the other one knows the workflow's name, and leaves it alone.
    await one.close();
    await waitUntil(async () => (await two.admin.get('pinned')).status === 'ENQUEUED', 'it is given back');
    expect(await two.admin.unservedVersions()).toMatchObject([{ appVersion: 'one', workflows: 1 }]);
    leave.open();
    const fresh = await two.start(changed, { workflowId: 'fresh' });
    expect(await fresh.result()).toEqual(['new first', 'new second']);
    expect(await two.admin.get('pinned')).toMatchObject({ status: 'ENQUEUED', appVersion: 'one' });
    const again = await bed.launch({ workflows: [old], appVersion: 'one' });
    expect(await two.handle('pinned').result()).toEqual(['old first', 'old second']);
    expect(await two.admin.unservedVersions()).toEqual([]);
    await Promise.all([again.close(), two.close()]);
  });

  test('what a dead executor of a release that is gone left is listed, too', async () => {
    const { old, changed, reached } = releases('left');
    const dead = await bed.launch({ workflows: [old], appVersion: 'dead', executorId: 'dead', pollInterval: '1h' });
    const two = await bed.launch({ workflows: [changed], appVersion: 'two' });
    await dead.start(old, { workflowId: 'left' });
    await reached.opened;
    expect(await two.admin.unservedVersions()).toEqual([]);
    await bed.expireLease('dead');
    const [found] = await two.admin.unservedVersions();
    expect(found).toMatchObject({ appVersion: 'dead', workflows: 1 });
    expect(found?.since).toBeInstanceOf(Date);
    await two.admin.cancel('left');
    await Promise.all([dead.close(), two.close()]);
  });

  test('without app versions, a workflow that the new code does not fit is BLOCKED, and finished after a rollback', async () => {
    const { old, changed, reached, leave } = releases('unversioned');
    const one = await bed.launch({ workflows: [old] });
    await one.start(old, { workflowId: 'unversioned' });
    await reached.opened;
    bodies.length = 0;
    await one.close();
    leave.open();
    const two = await bed.launch({ workflows: [changed] });
    await waitUntil(async () => (await two.admin.get('unversioned')).status === 'BLOCKED', 'it is found not to fit');
    expect((await two.admin.list({ attention: true })).items).toMatchObject([
      { attention: { code: 'NONDETERMINISM' } },
    ]);
    expect(bodies).toEqual([]);
    await two.close();
    const three = await bed.launch({ workflows: [old] });
    await three.admin.resume('unversioned');
    expect(await three.handle('unversioned').result()).toEqual(['old first', 'old second']);
    await three.close();
  });

  test('setAppVersion moves workflows to a release whose code fits them: those that wait, and those that run', async () => {
    const { old, patching, reached, leave } = releases('moved');
    const one = await bed.launch({ workflows: [old], appVersion: 'one' });
    const two = await bed.launch({ workflows: [patching], appVersion: 'two' });
    await one.start(old, { workflowId: 'moved' });
    await reached.opened;
    expect(await two.admin.setAppVersion('moved', { appVersion: 'one' })).toMatchObject({ result: 'unchanged' });
    const by = { appVersion: 'two', actor: 'anna', reason: 'release one goes' };
    const [moved, missing] = await two.admin.setAppVersion(['moved', 'nobody'], by);
    expect(moved).toMatchObject({ ok: true, result: 'done', statusBefore: 'PENDING', statusAfter: 'ENQUEUED' });
    expect(missing).toMatchObject({ ok: false, error: { code: 'WORKFLOW_NOT_FOUND' } });
    leave.open();
    expect(await one.handle('moved').result()).toEqual(['old first', 'new second']);
    expect(await two.admin.get('moved')).toMatchObject({ appVersion: 'two', epoch: 2, attempts: 1 });
    expect((await two.admin.audit('moved')).items).toMatchObject([
      { verb: 'setAppVersion', actor: 'anna', reason: 'release one goes', detail: { from: 'one', to: 'two' } },
    ]);
    await expect(two.admin.setAppVersion('moved', by)).rejects.toMatchObject({ code: 'WORKFLOW_STATE' });
    await Promise.all([one.close(), two.close()]);
  });

  test('setAppVersion leaves a delay as it is, and unchanged what any version may claim', async () => {
    const { old, reached } = releases('waiting');
    const one = await bed.launch({ workflows: [old], appVersion: 'one', queues: [{ name: 'line' }] });
    await one.queues.pause('line');
    await one.enqueue(old, { queue: 'line', workflowId: 'in line' });
    await one.start(old, { workflowId: 'delayed' });
    await reached.opened;
    await bed.sql.query(
      `UPDATE holdfast.workflow_status SET status = 'DELAYED', owner_token = NULL, wake_at = now() + interval '1 h'
        WHERE workflow_id = 'delayed'`,
    );
    const results = await one.admin.setAppVersion(['in line', 'delayed'], { appVersion: 'three' });
    expect(results).toMatchObject([{ result: 'unchanged' }, { result: 'done', statusAfter: 'DELAYED' }]);
    expect(await one.admin.unservedVersions()).toMatchObject([{ appVersion: 'three', workflows: 1 }]);
    await expect(one.admin.setAppVersion('delayed', { appVersion: 'x'.repeat(201) })).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
    });
    await one.admin.cancel(['in line', 'delayed']);
    await one.close();
  });
});
