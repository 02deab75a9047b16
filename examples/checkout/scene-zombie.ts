import { isDeepStrictEqual } from 'node:util';
import type { Order } from './checkout.js';
import { LEASE } from './lease.js';
import { recordedSteps, waitUntil } from './records.js';
import { CAN_FREEZE } from './roles.js';
import { named, type Story } from './story.js';
import type { WorkerProcess } from './worker-process.js';

/** Worker C is frozen in the middle of a step for longer than its lease, and comes back after worker B has finished its work. */
export async function raiseZombie(story: Story): Promise<WorkerProcess | undefined> {
  const { narrator, holdfast } = story;
  narrator.stage('Worker C becomes a zombie');
  const order = story.orderOf('zombie');
  if (order === undefined) {
    narrator.say(CAN_FREEZE ? 'Skipped: no order is left for it.' : 'Skipped: Windows cannot freeze a process.');
    return undefined;
  }
  const zombie = await story.launchWorker('Worker C', { orderId: order.id, step: 'charge' });
  zombie.start(order);
  await zombie.next('holding', () => true, `to charge order ${named(order)}`);
  zombie.freeze();
  await story.interrupted(order.id);
  narrator.say(`SIGSTOP: worker C, process ${String(zombie.processId)}, is frozen while it charges ${named(order)}.`);
  await waitUntil(
    async () => (await holdfast.admin.get(order.id)).epoch > 1,
    `another worker takes order ${named(order)} over`,
  );
  narrator.say(`Its lease (${LEASE}) runs out, and worker B takes over.`);
  await comeBack(story, zombie, order);
  return zombie;
}

async function comeBack(story: Story, zombie: WorkerProcess, order: Order): Promise<void> {
  const { narrator, holdfast } = story;
  const recorded = await story.receiptOf(order.id);
  narrator.say(`Worker B has finished it: ${recorded.parcel}.`);
  const stepsBefore = await recordedSteps(holdfast, order.id);
  const runsBefore = runsOf(story, order, zombie);

  // First the message, then life: the step ends at once, before worker C can have heard what happened meanwhile.
  zombie.letGo();
  zombie.thaw();
  const { receipt } = await zombie.next('returned', () => true, `to return the receipt of ${named(order)}`);
  const stepsAfter = await recordedSteps(holdfast, order.id);
  narrator.say('SIGCONT: worker C finishes its charge and wants to record it.');

  const refused = isDeepStrictEqual(stepsAfter, stepsBefore);
  story.expect(refused, `the late result of the zombie changed the record of order ${named(order)}`);
  if (refused) narrator.say('Its late write was refused: the record is unchanged.');
  const stopped = runsOf(story, order, zombie) === runsBefore;
  story.expect(stopped, `the zombie started another step of order ${named(order)}`);
  if (stopped) narrator.say('It started no further step.');
  const same = isDeepStrictEqual(receipt, recorded);
  story.expect(same, `the handle of the zombie returned another receipt for order ${named(order)}`);
  narrator.say(`Its own handle returned: ${receipt.parcel}. That is ${same ? 'the same' : 'NOT the same'} receipt.`);
  await showOwners(story, order);
}

function runsOf(story: Story, order: Order, worker: WorkerProcess): number {
  return story.bodyRuns().filter(({ orderId, processId }) => orderId === order.id && processId === worker.processId)
    .length;
}

async function showOwners(story: Story, order: Order): Promise<void> {
  const { items } = await story.holdfast.admin.ownership(order.id);
  for (const { epoch, reason, endedHow } of items.toReversed()) {
    story.narrator.say(`Epoch ${String(epoch)} of ${named(order)}: ${reason}, then ${endedHow ?? 'still running'}.`);
  }
}
