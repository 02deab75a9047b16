import { WorkflowCancelledError } from '../../src/index.js';
import { hasBegunToSleep, waitUntil } from './records.js';
import { named, type Story } from './story.js';
import type { WorkerProcess } from './worker-process.js';

const ACTOR = 'checkout example';

/** A person cancels an order while it is being packed, and thinks better of it. */
export async function cancelAndResume(story: Story, worker: WorkerProcess): Promise<void> {
  const { narrator, holdfast } = story;
  narrator.stage('An order is cancelled and resumed');
  const order = story.orderOf('cancelled');
  if (order === undefined) {
    narrator.say('Skipped: no order is left for it.');
    return;
  }
  worker.start(order);
  await worker.next('started', ({ orderId }) => orderId === order.id, `to start order ${named(order)}`);
  await waitUntil(() => hasBegunToSleep(holdfast, order.id), `order ${named(order)} is being packed`);

  await holdfast.admin.cancel(order.id, { actor: ACTOR, reason: 'The customer changed their mind.' });
  const recorded = await story.interrupted(order.id);
  narrator.say(`Cancelled while ${named(order)} was being packed: ${(await holdfast.admin.get(order.id)).status}.`);
  const { error } = await worker.next('threw', ({ orderId }) => orderId === order.id, `to hear of the cancellation`);
  narrator.say(`The worker that waited for it got a ${error}.`);
  story.expect(error === WorkflowCancelledError.name, `the handle of cancelled order ${named(order)} threw a ${error}`);

  await holdfast.admin.resume(order.id, { actor: ACTOR, reason: 'And changed it back.' });
  const receipt = await story.receiptOf(order.id);
  const { status, epoch } = await holdfast.admin.get(order.id);
  narrator.say(
    `Resumed: it kept ${recorded.map(({ name }) => name).join(', ')}, slept for the rest and went on. ` +
      `${status} in epoch ${String(epoch)}: ${receipt.parcel}.`,
  );
}
