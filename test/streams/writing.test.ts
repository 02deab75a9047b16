import { afterAll, beforeAll, expect, test } from 'vitest';
import { closeStream, defineWorkflow, runStep, step, writeStream, type Holdfast } from '../../src/index.js';
import { createBed, gate, waitUntil, type Bed } from '../support/launch.js';
import { all, codeOf, first, values } from './support/read.js';

let bed: Bed;
let holdfast: Holdfast;

/** What the workflow of a test does; by workflow ID. */
const scripts = new Map<string, (workflowId: string) => Promise<unknown>>();
const scripted = defineWorkflow('scripted', (workflowId: string) => {
  const script = scripts.get(workflowId);
  if (script === undefined) throw new Error('No script.');
  return script(workflowId);
});

async function run(workflowId: string, script: () => Promise<unknown>, on: Holdfast = holdfast): Promise<unknown> {
  scripts.set(workflowId, script);
  return (await on.start(scripted, { workflowId }, workflowId)).result();
}

beforeAll(async () => {
  bed = await createBed();
  holdfast = await bed.launch({ workflows: [scripted] });
});
afterAll(() => bed.close());

async function entriesOf(workflowId: string): Promise<Record<string, unknown>[]> {
  const { rows } = await bed.sql.query<Record<string, unknown>>(
    'SELECT stream, entry_offset::int AS o, value, seq FROM holdfast.stream_entry WHERE workflow_id = $1 ORDER BY 1, 2',
    [workflowId],
  );
  return rows;
}

test('what a workflow writes is read with offsets from 0, and has whatever form values can have', async () => {
  const written = ['text', 1, null, undefined, new Map([['a', new Date(0)]]), { nested: [Number.NaN] }];
  await run('forms', async () => {
    for (const value of written) await writeStream('s', value);
  });
  const entries = await all(holdfast.readStream('forms', 's'));
  expect(entries.map(({ value }) => value)).toEqual(written);
  expect(entries.map(({ offset }) => offset)).toEqual([0, 1, 2, 3, 4, 5]);
  expect(entries.map(({ seq, attempt, epoch }) => [seq, attempt, epoch])).toEqual(
    written.map((_, index) => [index, 1, 1]),
  );
  expect(entries[0]?.writtenAt).toBeInstanceOf(Date);
});

test('an entry commits with the record of its call: one version, one nonce, one transaction', async () => {
  await run('together', async () => {
    await writeStream('s', 'x');
    await closeStream('s');
  });
  const { rows } = await bed.sql.query<{ kind: string; name: string; same: boolean }>(`
    SELECT r.kind, r.name, r.xmin = e.xmin AND r.nonce = e.nonce AS same
      FROM holdfast.step_result r JOIN holdfast.stream_entry e ON e.workflow_id = r.workflow_id AND e.seq = r.seq
     WHERE r.workflow_id = 'together' ORDER BY r.seq`);
  expect(rows).toEqual([
    { kind: 'stream', name: 's', same: true },
    { kind: 'stream-close', name: 's', same: true },
  ]);
});

test('what a step writes is there before the step has ended', async () => {
  const seen = gate();
  scripts.set('progress', () =>
    runStep('work', async () => {
      await writeStream('s', 'half');
      await seen.opened;
      await writeStream('s', 'whole');
    }),
  );
  const handle = await holdfast.start(scripted, { workflowId: 'progress' }, 'progress');
  expect((await first(1, handle.readStream('s'))).map(({ value }) => value)).toEqual(['half']);
  expect((await bed.sql.query(`SELECT FROM holdfast.step_result WHERE workflow_id = 'progress'`)).rowCount).toBe(0);
  seen.open();
  await handle.result();
  expect(await values(holdfast.readStream('progress', 's'))).toEqual(['half', 'whole']);
});

test('entries are in the order of the calls, also of calls that nobody awaits, through a codec that takes its time', async () => {
  const slow = await bed.launch({
    appVersion: 'slow codec',
    workflows: [scripted],
    codecs: [
      {
        name: 'slow',
        encode: (text) => new Promise((resolve) => setTimeout(() => { resolve(text); }, text.includes('odd') ? 20 : 1)),
        decode: (text) => text,
      },
    ],
  }); // prettier-ignore
  const written = Array.from({ length: 20 }, (_, n) => `${n % 2 === 0 ? 'even' : 'odd'} ${String(n)}`);
  await run(
    'order',
    async () => {
      await Promise.all(written.map((value) => writeStream('calls', value)));
      await runStep('step', async () => {
        let last: Promise<void> | undefined;
        for (const value of written) last = writeStream('step', value);
        await last;
      });
    },
    slow,
  );
  expect(await values(slow.readStream('order', 'calls'))).toEqual(written);
  expect(await values(slow.readStream('order', 'step'))).toEqual(written);
});

test('C46 parallel writers, a thousand entries at once: the offsets of each stream have no gap and no double', async () => {
  await run('parallel', () =>
    Promise.all([
      ...Array.from({ length: 5 }, (_, writer) =>
        runStep(`writer ${String(writer)}`, async () => {
          await Promise.all(
            Array.from({ length: 180 }, (__, n) => writeStream(n % 2 === 0 ? 'even' : 'odd', [writer, n])),
          );
        }),
      ),
      ...Array.from({ length: 100 }, (_, n) => writeStream('even', ['workflow', n])),
    ]),
  );
  for (const [stream, count] of [['even', 550], ['odd', 450]] as const) {
    const entries = await all(holdfast.readStream<[unknown, number]>('parallel', stream));
    expect(entries.map(({ offset }) => offset)).toEqual(Array.from({ length: count }, (_, n) => n));
    expect(new Set(entries.map(({ value }) => JSON.stringify(value))).size).toBe(count);
    // Each writer's are in its own order.
    for (const writer of [0, 1, 2, 3, 4, 'workflow']) {
      const own = entries.flatMap(({ value }) => (value[0] === writer ? [value[1]] : []));
      expect(own).toEqual([...own].sort((a, b) => a - b));
    }
  }
}); // prettier-ignore

test('C46 a retried step that says oncePerStep does not double its entries; one that does not leaves those of each attempt', async () => {
  await run('retried', () =>
    runStep(
      'flaky',
      async () => {
        await writeStream('plain', `plain ${String(step().attempt)}`);
        await writeStream('once', 'a', { oncePerStep: true });
        if (step().attempt === 1) throw new Error('again');
        await writeStream('once', 'b', { oncePerStep: true });
        if (step().attempt === 2) throw new Error('again');
        await writeStream('once', 'c', { oncePerStep: true });
      },
      { retries: { maxAttempts: 3, initialDelay: 1 } },
    ),
  );
  const once = await all(holdfast.readStream('retried', 'once'));
  expect(once.map(({ offset, value, attempt }) => [offset, value, attempt])).toEqual([
    [0, 'a', 1],
    [1, 'b', 2],
    [2, 'c', 3],
  ]);
  const plain = await all(holdfast.readStream('retried', 'plain'));
  expect(plain.map(({ value, attempt }) => [value, attempt])).toEqual([
    ['plain 1', 1],
    ['plain 2', 2],
    ['plain 3', 3],
  ]);
});

test('C46 two steps that say oncePerStep, and two streams of one step, do not take each other’s entries for their own', async () => {
  const write = (name: string): Promise<void> =>
    runStep(name, async () => {
      await writeStream('a', name, { oncePerStep: true });
      await writeStream('b', name, { oncePerStep: true });
      await writeStream('a', `${name} again`, { oncePerStep: true });
    });
  await run('two', async () => {
    await write('first');
    await write('second');
  });
  expect(await values(holdfast.readStream('two', 'a'))).toEqual(['first', 'first again', 'second', 'second again']);
  expect(await values(holdfast.readStream('two', 'b'))).toEqual(['first', 'second']);
});

test('an attempt that has run out of time writes nothing any more', async () => {
  const late = gate();
  const codes: string[] = [];
  await run('late', () =>
    runStep(
      'slow',
      async () => {
        const { attempt } = step();
        await writeStream('s', attempt);
        if (attempt === 1) {
          await late.opened;
          codes.push(await codeOf(writeStream('s', 'late')));
          return;
        }
        late.open();
        await waitUntil(() => codes.length === 1, 'the first attempt has been refused');
      },
      { timeout: 300, retries: { maxAttempts: 2, initialDelay: 1 } },
    ),
  );
  expect(codes).toEqual(['OUTSIDE_WORKFLOW']);
  expect(await values(holdfast.readStream('late', 's'))).toEqual([1, 2]);
});

test('a closed stream takes nothing more, from the workflow or a step; closing it twice is harmless, other streams go on', async () => {
  const codes = await run('closed', async () => {
    await writeStream('s', 1);
    await closeStream('s');
    await closeStream('s');
    await closeStream('never written');
    await writeStream('other', 1);
    return [
      await codeOf(writeStream('s', 2)),
      await codeOf(writeStream('never written', 2)),
      await runStep('step', () => codeOf(writeStream('s', 3))),
      await runStep('step', () => codeOf(closeStream('other'))),
    ];
  });
  expect(codes).toEqual(['STREAM_CLOSED', 'STREAM_CLOSED', 'STREAM_CLOSED', 'OUTSIDE_WORKFLOW']);
  expect(await values(holdfast.readStream('closed', 's'))).toEqual([1]);
  expect(await entriesOf('closed')).toEqual([
    { stream: 'never written', o: 0, value: null, seq: 3 },
    { stream: 'other', o: 0, value: '1', seq: 4 },
    { stream: 's', o: 0, value: '1', seq: 0 },
    { stream: 's', o: 1, value: null, seq: 1 },
  ]);
});

test('writes to open and closed streams in one batch: each gets its own answer', async () => {
  const codes = await run('mixed', async () => {
    await closeStream('shut');
    return runStep('step', () =>
      Promise.all(
        Array.from({ length: 30 }, (_, n) => codeOf(writeStream(n % 3 === 0 ? 'shut' : 'open', n))),
      ),
    );
  }); // prettier-ignore
  expect(codes).toEqual(Array.from({ length: 30 }, (_, n) => (n % 3 === 0 ? 'STREAM_CLOSED' : 'none')));
  expect(await values(holdfast.readStream('mixed', 'open'))).toHaveLength(20);
});

test('C45 keys with quotes, colons, emoji and of 512 bytes are keys; entries of megabytes are entries', async () => {
  const keys = [`it's "quoted"`, 'a:b:c', '🙂', ' ', '__proto__', '$1; DROP TABLE x', 'é'.repeat(256)];
  const big = 'x'.repeat(3_000_000);
  await run('odd', async () => {
    for (const key of keys) await writeStream(key, key);
    await writeStream('big', big);
    await runStep('step', () => Promise.all([writeStream('big', big), writeStream('big', `${big}!`)]));
  });
  for (const key of keys) expect(await values(holdfast.readStream('odd', key))).toEqual([key]);
  expect(await values(holdfast.readStream('odd', 'big'))).toEqual([big, big, `${big}!`]);
});

test.each<[string, unknown, unknown, object | undefined, string]>([
  ['an empty key', '', 1, undefined, 'INVALID_ARGUMENT'],
  ['a key of 513 bytes', 'k'.repeat(513), 1, undefined, 'INVALID_ARGUMENT'],
  ['a key with NUL', 'a\0b', 1, undefined, 'INVALID_ARGUMENT'],
  ['a key with half a surrogate pair', '\ud800', 1, undefined, 'INVALID_ARGUMENT'],
  ['a key that is no text', 7, 1, undefined, 'INVALID_ARGUMENT'],
  ['an option that does not exist', 'k', 1, { once: true }, 'INVALID_ARGUMENT'],
  ['a function as value', 'k', () => 1, undefined, 'VALUE_NOT_SERIALIZABLE'],
  ['a value over maxValueBytes', 'k', 'x'.repeat(1_024), undefined, 'PAYLOAD_TOO_LARGE'],
])('%s is refused before anything is written, in the workflow and in a step', async (what, key, value, options, code) => {
  const small = await bed.launch({ appVersion: what, workflows: [scripted], maxValueBytes: 1_024 });
  const workflowId = `refused ${what}`;
  const attempt = (): Promise<string> => codeOf(writeStream(key as string, value, options));
  expect(await run(workflowId, async () => [await attempt(), await runStep('step', attempt)], small)).toEqual([code, code]);
  expect(await entriesOf(workflowId)).toEqual([]);
  await small.close();
}); // prettier-ignore

test('outside of workflows nothing can be written', async () => {
  expect(await codeOf(writeStream('s', 1))).toBe('OUTSIDE_WORKFLOW');
  expect(await codeOf(closeStream('s'))).toBe('OUTSIDE_WORKFLOW');
});

test('writes that nobody awaits do not outlive the workflow, and never become unhandled rejections', async () => {
  await run('left alone', async () => {
    void writeStream('s', 1);
    void closeStream('s');
    await Promise.resolve();
  });
  expect((await entriesOf('left alone')).length).toBeLessThanOrEqual(2);
});
