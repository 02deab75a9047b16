import { defineWorkflow } from '../../../../src/index.js';
import type { LedgerClient } from '../ledger/ledger-client.js';
import { NO_QUEUE } from '../traffic.js';
import { defineCoreWorkload, PATIENT } from './core-workload.js';
import { WholeRun } from './whole-run.js';
import type { BodyTimes } from './witnessed-run.js';

/** The workflows of the campaign, by their names. Names of steps are unique in a workflow. */
export function defineWorkload(ledger: LedgerClient, times: BodyTimes) {
  const begin = (): WholeRun => new WholeRun(ledger, times);

  const paying = defineWorkflow(
    'paying',
    async () => {
      const run = begin();
      return [await run.act('quote'), await run.pay('pay'), await run.pay('tip'), await run.act('receipt')];
    },
    PATIENT,
  );

  const herald = defineWorkflow(
    'herald',
    async () => {
      const run = begin();
      await run.announce('first news', 1);
      const middle = await run.act('between');
      await run.announce('second news', 2);
      return [middle, await run.act('after')];
    },
    PATIENT,
  );

  const poster = defineWorkflow(
    'poster',
    async () => {
      const run = begin();
      const before = await run.act('before');
      await run.post('post', before);
      return [before, await run.act('after')];
    },
    PATIENT,
  );

  const queued = defineWorkflow(
    'queued',
    async (key: string) => {
      const run = begin();
      const queue = key.startsWith(NO_QUEUE) ? undefined : key;
      return [await run.act('one', queue), await run.act('two', queue)];
    },
    PATIENT,
  );

  const mailbox = defineWorkflow(
    'mailbox',
    async (count: number) => {
      const run = begin();
      const received: string[] = [];
      for (let index = 0; index < count; index++) {
        received.push(await run.receive(`mail ${String(index)}`));
        if (index === count >> 1) await run.act('between');
      }
      return received;
    },
    PATIENT,
  );

  return { ...defineCoreWorkload(ledger, times), paying, herald, poster, queued, mailbox };
}
