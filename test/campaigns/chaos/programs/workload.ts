import { defineWorkflow } from '../../../../src/index.js';
import type { LedgerClient } from '../ledger/ledger-client.js';
import { WitnessedRun, type BodyTimes } from './witnessed-run.js';

/** The workflows of the campaign, by their names. Names of steps are unique in a workflow. */
export function defineWorkload(ledger: LedgerClient, times: BodyTimes) {
  const begin = (): WitnessedRun => new WitnessedRun(ledger, times);

  const short = defineWorkflow('short', () => begin().act('only'));

  const steps = defineWorkflow('steps', async () => {
    const run = begin();
    const done: string[] = [];
    for (const name of ['a', 'b', 'c']) done.push(await run.act(name));
    done.push(...(await Promise.all(['x', 'y', 'z'].map((name) => run.act(name)))));
    done.push(await run.act('last'));
    return done;
  });

  const paying = defineWorkflow('paying', async () => {
    const run = begin();
    return [await run.act('quote'), await run.pay('pay'), await run.pay('tip'), await run.act('receipt')];
  });

  const parent = defineWorkflow('parent', async () => {
    const run = begin();
    const first = await run.call('child', () => short());
    const others = await Promise.all([run.call('child 2', () => steps()), run.call('child 3', () => short())]);
    return [first, ...others.flat()];
  });

  const sleeper = defineWorkflow('sleeper', async () => {
    const run = begin();
    await run.rest('nap', 40);
    const middle = await run.act('between');
    await run.rest('night', 900);
    return [middle, await run.act('after')];
  });

  const herald = defineWorkflow('herald', async () => {
    const run = begin();
    await run.announce('first news', 1);
    const middle = await run.act('between');
    await run.announce('second news', 2);
    return [middle, await run.act('after')];
  });

  const poster = defineWorkflow('poster', async () => {
    const run = begin();
    const before = await run.act('before');
    await run.post('post', before);
    return [before, await run.act('after')];
  });

  const queued = defineWorkflow('queued', async (key: string) => {
    const run = begin();
    return [await run.act('one', key), await run.act('two', key)];
  });

  const mailbox = defineWorkflow('mailbox', async (count: number) => {
    const run = begin();
    const received: string[] = [];
    for (let index = 0; index < count; index++) {
      received.push(await run.receive(`mail ${String(index)}`));
      if (index === count >> 1) await run.act('between');
    }
    return received;
  });

  return { steps, short, paying, parent, sleeper, herald, poster, queued, mailbox };
}
