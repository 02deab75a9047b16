import { expect, test } from 'vitest';
import { Watcher } from '../../src/engine/watcher.js';
import { systemRuntime } from '../../src/runtime/system-runtime.js';

interface Place {
  readonly workflowId: string;
}

/** A store of which each query is answered by hand. */
function byHand(pollMs = 3_600_000) {
  const queries: { ids: string[]; answer(found: (string | undefined)[]): void; fail(error: Error): void }[] = [];
  const watcher = new Watcher<Place, string>(
    (places) =>
      new Promise((answer, fail) => {
        queries.push({ ids: places.map(({ workflowId }) => workflowId), answer, fail });
      }),
    pollMs,
    systemRuntime,
  );
  return { watcher, queries };
}

const turn = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 5));

test('what is hinted at between the beginning of the watch and the wait is not missed', async () => {
  const { watcher, queries } = byHand();
  const watch = watcher.watch({ workflowId: 'w' });
  watcher.check(['w']);
  await turn();
  expect(queries).toHaveLength(0);
  const next = watch.next();
  await turn();
  queries[0]?.answer(['it']);
  expect(await next).toBe('it');
  watcher.close();
});

test('what is hinted at while a query is under way is asked about again', async () => {
  const { watcher, queries } = byHand();
  const watch = watcher.watch({ workflowId: 'w' });
  const next = watch.next();
  watcher.check(null);
  await turn();
  watcher.check(['w']);
  queries[0]?.answer([undefined]);
  await turn();
  expect(queries).toHaveLength(2);
  queries[1]?.answer(['it']);
  expect(await next).toBe('it');
  watcher.close();
});

test('what nobody hints at is found by one query a poll for all who wait, and nothing is asked when nobody does', async () => {
  const asked: string[][] = [];
  const watcher = new Watcher<Place, string>(
    (places) => {
      asked.push(places.map(({ workflowId }) => workflowId));
      return Promise.resolve(places.map(() => 'it'));
    },
    10,
    systemRuntime,
  );
  const watches = ['a', 'b', 'b'].map((workflowId) => watcher.watch({ workflowId }));
  const stopped = watcher.watch({ workflowId: 'c' });
  void stopped.next();
  stopped.stop();
  expect(await Promise.all(watches.map((watch) => watch.next()))).toEqual(['it', 'it', 'it']);
  expect(asked).toEqual([['a', 'b', 'b']]);
  for (const watch of watches) watch.stop();
  await turn();
  await turn();
  await turn();
  expect(asked).toHaveLength(1);
  watcher.close();
});

test('a refusal reaches everyone who waits, and the end of the watcher too', async () => {
  const { watcher, queries } = byHand();
  const watch = watcher.watch({ workflowId: 'w' });
  const next = watch.next();
  watcher.check(['w']);
  await turn();
  queries[0]?.fail(new Error('refused'));
  await expect(next).rejects.toThrow('refused');
  const last = watch.next();
  watcher.close();
  await expect(last).rejects.toMatchObject({ code: 'CLOSED' });
  await expect(watch.next()).rejects.toMatchObject({ code: 'CLOSED' });
});
