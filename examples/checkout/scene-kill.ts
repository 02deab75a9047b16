import type { Order } from './checkout.js';
import { LEASE } from './lease.js';
import { hasBegunToSleep, type RecordedStep, waitUntil } from './records.js';
import { named, type Story } from './story.js';
import { StoryError } from './story-error.js';
import { counted, listed } from './text.js';
import { PATH } from './verify.js';
import type { WorkerProcess } from './worker-process.js';

/** Workers A and B: A is killed in the middle of a step, B carries on with everything that A had begun. Returns B. */
export async function killAndRecover(story: Story): Promise<WorkerProcess> {
  const victim = story.orderOf('killed');
  if (victim === undefined) throw new StoryError('There is no order to begin with.');
  const others = story.cast.filter(({ role }) => role === 'undisturbed').map(({ order }) => order);
  await startAndKill(story, victim, others);
  return recover(story, [victim, ...others]);
}

async function startAndKill(story: Story, victim: Order, others: readonly Order[]): Promise<void> {
  const { narrator, holdfast } = story;
  narrator.stage('Worker A takes orders');
  const worker = await story.launchWorker('Worker A', { orderId: victim.id, step: 'charge' });
  for (const order of [victim, ...others]) worker.start(order);
  const orders = counted(others.length + 1, 'order');
  narrator.say(`Process ${String(worker.processId)} places ${orders}: ${listed([victim, ...others].map(named))}.`);
  narrator.say('Each is reserved, charged, packed (a durable sleep of two seconds) and shipped.');

  narrator.stage('Worker A is killed in the middle of a step');
  await worker.next('holding', () => true, `to charge order ${named(victim)}`);
  await Promise.all(
    others.map(async (order) => {
      await worker.next('started', ({ orderId }) => orderId === order.id, `to start order ${named(order)}`);
      await waitUntil(() => hasBegunToSleep(holdfast, order.id), `order ${named(order)} is being packed`);
    }),
  );
  narrator.say(`${named(victim)} is just being charged${others.length === 0 ? '.' : '; the others are being packed.'}`);
  await worker.kill();
  narrator.say('SIGKILL: worker A is gone. Whether that charge went through, nobody can tell.');
}

async function recover(story: Story, orders: readonly Order[]): Promise<WorkerProcess> {
  const { narrator, holdfast } = story;
  narrator.stage('Worker B carries on');
  const recorded = new Map<string, readonly RecordedStep[]>();
  for (const order of orders) recorded.set(order.id, await story.interrupted(order.id));
  const worker = await story.launchWorker('Worker B');
  narrator.say(
    `Process ${String(worker.processId)} waits until the lease of worker A (${LEASE}) has run out, then takes over.`,
  );
  const lines: string[] = [];
  for (const order of orders) {
    await story.receiptOf(order.id);
    const { epoch } = await holdfast.admin.get(order.id);
    lines.push(`${named(order)}: ${describeRecovery(recorded.get(order.id) ?? [], epoch)}.`);
  }
  narrator.sayEach(lines);
  return worker;
}

/** Where the record ends, the new owner goes on. */
function describeRecovery(recorded: readonly RecordedStep[], epoch: number): string {
  // On a machine that stalls, an order may be shipped before the kill.
  if (epoch === 1) return 'was completed before the kill';
  const kept = recorded.length === 0 ? 'nothing was on record' : `kept ${recorded.map(({ name }) => name).join(', ')}`;
  return `epoch 1 → ${String(epoch)}, continued from ${PATH[recorded.length] ?? 'its end'} (${kept})`;
}
