/** The client of the campaign: it enqueues, sends messages, asks for events and outcomes, and carries out what an operator would. */
import { HoldfastClient } from '../../../../src/index.js';
import { SeededRandom } from '../../support/seeded-random.js';
import { LedgerClient } from '../ledger/ledger-client.js';
import { CLIENT_KINDS, drawKind, MAILBOX_TOPIC, NO_QUEUE, QUEUE, QUEUE_KEYS } from '../traffic.js';
import type { Command, ProgramOptions } from './messages.js';
import { obeySupervisor } from './obey.js';
import { codeOf, noteError, type Told, toldCall, toldOutcome, watchProcess } from './told.js';
import { silentLogger } from '../../support/silent-logger.js';

const MESSAGES = 4;
/** A send is repeated under its key until it is answered. */
const RETRY_MS = 50;
const STORMERS = 8;
const ACTOR = 'chaos';

const options = JSON.parse(process.argv[2] ?? '{}') as ProgramOptions;
const ledger = await LedgerClient.open(options.ledgerPort, options.who);
watchProcess(ledger);
const connect = (maxConnections: number): Promise<HoldfastClient> =>
  HoldfastClient.connect({
    database: options.database,
    pollInterval: options.pollMs,
    maxConnections,
    logger: silentLogger,
  });
const client = await connect(options.maxConnections);
await ledger.tell({ what: 'process', process: options.who, happened: 'launched' });

const random = new SeededRandom(options.seed);
let isCalm = false;
let started = 0;
let stormers: Promise<readonly HoldfastClient[]> | undefined;

async function keepBusy(): Promise<void> {
  while (!isCalm) {
    const kind = drawKind(options.traffic, (one) => CLIENT_KINDS.includes(one), random.next());
    if (kind === undefined) return;
    const workflowId = `${kind} ${options.who} ${String(started++)}`;
    if (kind === 'queued') await queued(workflowId);
    else await mailbox(workflowId);
  }
}

async function queued(workflowId: string): Promise<void> {
  const key = `key ${String(Math.floor(random.next() * QUEUE_KEYS))}`;
  const call = { kind: 'enqueue', workflowId, value: JSON.stringify([key]) } as const;
  const handle = await toldCall(ledger, call, () =>
    client.enqueue('queued', { workflowId, queue: QUEUE.name, key }, key),
  );
  if (handle.how === 'ok') await toldOutcome(ledger, workflowId, () => handle.result.result());
}

/** Starts one, and sends it its messages one after the other, each until it is acknowledged. */
async function mailbox(workflowId: string): Promise<void> {
  const call = { kind: 'enqueue', workflowId, value: JSON.stringify([MESSAGES]) } as const;
  await untilKnown(() => toldCall(ledger, call, () => client.start('mailbox', { workflowId }, MESSAGES)));
  for (let index = 0; index < MESSAGES; index++) {
    const message = `${workflowId} message ${String(index)}`;
    const send = { kind: 'send', workflowId, value: JSON.stringify(message) } as const;
    const sendIt = (): Promise<void> => client.send(workflowId, MAILBOX_TOPIC, message, { idempotencyKey: message });
    await untilKnown(() => toldCall(ledger, send, sendIt));
  }
  await toldOutcome(ledger, workflowId, () => client.handle(workflowId).result());
}

async function untilKnown(call: () => Promise<Told<unknown>>): Promise<void> {
  while ((await call()).how === 'unknown') await later(RETRY_MS);
}

function later(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Eight clients start the same ID at once. @returns how many of them were told that it is started */
async function storm(workflowId: string): Promise<number> {
  stormers ??= Promise.all(Array.from({ length: STORMERS }, () => connect(2)));
  const all = (await stormers).map(async (one, index) => {
    const key = `${NO_QUEUE} ${String(index)}`;
    const call = { kind: 'enqueue', workflowId, value: JSON.stringify([key]) } as const;
    const handle = await toldCall(ledger, call, () => one.enqueue('queued', { workflowId }, key));
    if (handle.how === 'ok') void toldOutcome(ledger, workflowId, () => handle.result.result());
    return handle.how === 'ok';
  });
  return (await Promise.all(all)).filter(Boolean).length;
}

/** @returns whether it was carried out, as far as is known */
async function control({ verb, workflowId }: Extract<Command, { do: 'control' }>): Promise<boolean> {
  const kind = verb === 'force-delete' ? 'delete' : verb;
  const done = await toldCall(ledger, { kind, workflowId }, async () => {
    switch (verb) {
      case 'cancel':
        return client.admin.cancel(workflowId, { actor: ACTOR });
      case 'fork':
        return client.admin.fork(workflowId, { actor: ACTOR, fromStep: 0, workflowId: `${workflowId} fork` });
      case 'force-delete':
        return client.admin.delete(workflowId, { actor: ACTOR, force: true });
      case 'retain':
        return client.admin.delete(workflowId, { actor: ACTOR });
    }
  });
  return done.how === 'ok';
}

async function obey(command: Command): Promise<unknown> {
  switch (command.do) {
    case 'calm':
      isCalm = true;
      return undefined;
    case 'report':
      return undefined;
    case 'observe':
      return Promise.all(
        command.workflowIds.map((workflowId) =>
          toldOutcome(ledger, workflowId, () => client.handle(workflowId).result()),
        ),
      );
    case 'storm':
      return storm(command.workflowId);
    case 'control':
      return control(command);
    case 'block':
    case 'clock':
      throw new Error('That is for executors.');
  }
}

obeySupervisor(obey);
for (let index = 0; index < options.outstanding; index++) {
  keepBusy().catch((error: unknown) => {
    noteError(ledger, 'unhandled', codeOf(error));
  });
}
