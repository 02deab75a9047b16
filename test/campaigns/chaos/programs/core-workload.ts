import { defineWorkflow } from '../../../../src/index.js';
import type { LedgerClient } from '../ledger/ledger-client.js';
import { WitnessedRun, type BodyTimes } from './witnessed-run.js';

/** On a machine with much else to do, a short lease is lost again and again. */
export const PATIENT = { maxAttempts: 100_000 } as const;

/** Those workflows of the campaign that every release can run. Names of steps are unique in a workflow. */
export function defineCoreWorkload(ledger: LedgerClient, times: BodyTimes) {
  const begin = (): WitnessedRun => new WitnessedRun(ledger, times);

  const short = defineWorkflow('short', () => begin().act('only'), PATIENT);

  const steps = defineWorkflow(
    'steps',
    async () => {
      const run = begin();
      const done: string[] = [];
      for (const name of ['a', 'b', 'c']) done.push(await run.act(name));
      done.push(...(await Promise.all(['x', 'y', 'z'].map((name) => run.act(name)))));
      done.push(await run.act('last'));
      return done;
    },
    PATIENT,
  );

  const parent = defineWorkflow(
    'parent',
    async () => {
      const run = begin();
      const first = await run.call('child', () => short());
      const others = await Promise.all([run.call('child 2', () => steps()), run.call('child 3', () => short())]);
      return [first, ...others.flat()];
    },
    PATIENT,
  );

  const sleeper = defineWorkflow(
    'sleeper',
    async () => {
      const run = begin();
      await run.rest('nap', 40);
      const middle = await run.act('between');
      await run.rest('night', 900);
      return [middle, await run.act('after')];
    },
    PATIENT,
  );

  return { short, steps, parent, sleeper };
}
