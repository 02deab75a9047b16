import { randomUUID } from 'node:crypto';
import {
  defineWorkflow,
  type Holdfast,
  type HoldfastClient,
  receive,
  runStep,
  runTransaction,
  setEvent,
  transaction,
  workflow,
} from '../../../src/index.js';
import type { Ledger } from './ledger.js';

/** Written by the transaction of each journey; nothing but that keeps a second row out. */
export const CREATE_EFFECTS = 'CREATE TABLE effect (workflow_id text NOT NULL, run text NOT NULL)';

export const TOPIC = 'go on';
export const EVENT = 'half';

/** Of both libraries, as far as one statement needs it. */
type EitherClient =
  | { query(statement: string, parameters: unknown[]): Promise<unknown> }
  | { unsafe(statement: string, parameters: unknown[]): Promise<unknown> };

/** A workflow with one of everything that is acknowledged. Nobody else than the bodies knows the values that they make up. */
export function makeJourney(ledger: Ledger) {
  const begin = (step: string): string => {
    const { workflowId, epoch } = workflow();
    const run = randomUUID();
    ledger.tell({ what: 'body', workflowId, step, run, epoch });
    return run;
  };
  const recorded = (step: string, value: string, kind: 'step' | 'message' | 'event' = 'step'): string => {
    ledger.tell({ what: 'recorded', kind, workflowId: workflow().workflowId, step, value });
    return value;
  };
  return defineWorkflow('journey', async (_input: string) => {
    const first = recorded('first', await runStep('first', async () => begin('first')));
    const effect = recorded(
      'effect',
      await runTransaction('effect', async () => {
        const run = begin('effect');
        const { client, workflowId } = { ...transaction<EitherClient>(), ...workflow() };
        const statement = 'INSERT INTO effect (workflow_id, run) VALUES ($1, $2)';
        if ('query' in client) await client.query(statement, [workflowId, run]);
        else await client.unsafe(statement, [workflowId, run]);
        return run;
      }),
    );
    await setEvent(EVENT, effect);
    recorded(EVENT, effect, 'event');
    const message = recorded(TOPIC, await receive<string>(TOPIC), 'message');
    const second = recorded('second', await runStep('second', async () => begin('second')));
    return [first, effect, message, second].join(' ');
  });
}

export type Journey = ReturnType<typeof makeJourney>;

/** Sends the message that a journey waits for, under its one key. */
export async function urge(
  by: Pick<Holdfast | HoldfastClient, 'send'>,
  workflowId: string,
  ledger: Ledger,
): Promise<void> {
  const value = `message for ${workflowId}`;
  await by.send(workflowId, TOPIC, value, { idempotencyKey: 'the one' });
  ledger.tell({ what: 'sent', workflowId, value });
}

/** Waits for the outcome, and says what was told. */
export async function hear(
  by: Pick<Holdfast | HoldfastClient, 'handle'>,
  workflowId: string,
  ledger: Ledger,
): Promise<void> {
  try {
    ledger.tell({ what: 'outcome', workflowId, value: String(await by.handle(workflowId).result()) });
  } catch (error) {
    ledger.tell({ what: 'wrong', workflowId, error: String(error) });
  }
}
