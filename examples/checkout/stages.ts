import type { Holdfast, StepDetails } from '../../src/index.js';
import type { Order, Receipt } from './checkout.js';
import type { Cleanup } from './cleanup.js';
import type { Narrator } from './narrator.js';
import type { Roles } from './roles.js';
import { StoryError } from './story-error.js';
import { counted, printable } from './text.js';
import { LEASE } from './lease.js';
import { WorkerProcess, type WorkerSettings } from './worker-process.js';

const LOOK_AGAIN_MS = 50;
const LONGEST_WAIT_MS = 40_000;
/** The step in which a worker is killed, and another one frozen. */
const CRITICAL_STEP = 'charge';

/** What every stage of the story needs. */
export interface Stage {
  readonly narrator: Narrator;
  readonly cleanup: Cleanup;
  readonly settings: WorkerSettings;
  /** Runs no workflows: it only looks, cancels and resumes. */
  readonly onlooker: Holdfast;
  readonly roles: Roles;
}

/** Worker A starts orders and is killed with SIGKILL in the middle of a step. */
export async function startAndKill({ narrator, cleanup, settings, onlooker, roles }: Stage): Promise<void> {
  const { killed, others } = roles;
  const orders = [killed, ...others];
  narrator.stage('A worker starts orders, and is killed in the middle of a step');
  const hold = { orderId: killed.id, step: CRITICAL_STEP };
  const worker = await WorkerProcess.start('A', settings, cleanup, hold);
  for (const order of orders) worker.place(order);
  for (const order of orders) await worker.hear('started', order.id);
  narrator.say(`Worker A (process ${String(worker.processId)}) has started ${counted(orders.length, 'order')}.`);
  await worker.hear('holding', killed.id);
  narrator.say(`Order ${printable(killed.id)} is in the middle of "${CRITICAL_STEP}": kill -9 for worker A.`);
  await worker.kill();
  const left = [];
  for (const order of orders) {
    const { status } = await onlooker.admin.get(order.id);
    if (status === 'PENDING') left.push(order);
  }
  narrator.say(
    `Worker A is dead. It left ${counted(left.length, 'order')} unfinished, each owned by a process that is gone.`,
  );
}

/** Worker B finds what A left, and goes on from the last recorded step of each. */
export async function recover({ narrator, cleanup, settings, onlooker, roles }: Stage): Promise<WorkerProcess> {
  const orders = [roles.killed, ...roles.others];
  narrator.stage(`Another worker recovers them, once the dead one's lease of ${LEASE} has run out`);
  const worker = await WorkerProcess.start('B', settings, cleanup);
  await Promise.all(orders.map((order) => onlooker.handle<Receipt>(order.id).result()));
  const lines: string[] = [];
  for (const order of orders) {
    const steps = (await onlooker.admin.steps(order.id)).items;
    const kept = steps.filter(({ complete, epoch }) => complete && epoch === 1);
    const next = steps.find(({ epoch, complete }) => epoch > 1 && complete);
    lines.push(`Order ${printable(order.id)}: ${whatWasKept(kept, next)}`);
  }
  narrator.sayEach(lines);
  return worker;
}

function whatWasKept(kept: readonly StepDetails[], next: StepDetails | undefined): string {
  const names = kept.map(({ name }) => name).join(', ');
  if (next === undefined) return 'was finished already.';
  return names === ''
    ? `went on from "${next.name}": nothing was on record.`
    : `${names} kept as recorded, went on from "${next.name}".`;
}

/** Worker Z is frozen for longer than its lease, B takes over, and Z wakes up as a zombie. */
export async function freeze({ narrator, cleanup, settings, onlooker }: Stage, order: Order): Promise<void> {
  narrator.stage('A worker is frozen for longer than its lease, and comes back as a zombie');
  const hold = { orderId: order.id, step: CRITICAL_STEP };
  const zombie = await WorkerProcess.start('Z', settings, cleanup, hold);
  zombie.place(order);
  await zombie.hear('holding', order.id);
  zombie.signal('SIGSTOP');
  narrator.say(
    `Worker Z is frozen (SIGSTOP) in "${CRITICAL_STEP}" of order ${printable(order.id)}. It still thinks that it owns the order.`,
  );
  const recorded = await onlooker.handle<Receipt>(order.id).result();
  narrator.say(`Worker B has taken over, and recorded: ${printable(recorded.parcel, 60)}.`);
  zombie.signal('SIGCONT');
  zombie.letGo();
  const { receipt } = await zombie.hear('returned', order.id);
  narrator.say(
    'Worker Z wakes up (SIGCONT), and wants to record its charge: refused, its ownership token is not the recorded one.',
  );
  narrator.say(`Its handle returns what worker B recorded: ${printable(receipt.parcel, 60)}.`);
  if (JSON.stringify(receipt) !== JSON.stringify(recorded)) {
    throw new StoryError('The zombie returned another outcome than the recorded one.');
  }
  const epochs = (await onlooker.admin.ownership(order.id)).items.toReversed();
  for (const { epoch, reason, endedHow } of epochs) {
    narrator.say(`  epoch ${String(epoch)}: ${reason}, ${endedHow ?? 'still owned'}`);
  }
  await zombie.stop();
}

/** An order is cancelled while it runs, and resumed. */
export async function cancelAndResume(
  { narrator, onlooker }: Stage,
  worker: WorkerProcess,
  order: Order,
): Promise<void> {
  narrator.stage('An order is cancelled while it runs, and resumed');
  worker.place(order);
  await until(async () => {
    const sleeps = await worker.hear('started', order.id).then(() => onlooker.admin.steps(order.id));
    return sleeps.items.some(({ kind, complete }) => kind === 'sleep' && !complete);
  }, 'the order is being packed');
  await onlooker.admin.cancel(order.id, { reason: 'the customer changed their mind' });
  const { error } = await worker.hear('threw', order.id);
  const { status } = await onlooker.admin.get(order.id);
  narrator.say(
    `Order ${printable(order.id)} is ${status} while it was being packed; the worker's handle threw ${error}.`,
  );
  await onlooker.admin.resume(order.id, { reason: 'and changed it back' });
  await onlooker.handle(order.id).result();
  narrator.say('Resumed, it finished without doing again what was recorded.');
}

async function until(condition: () => Promise<boolean>, what: string): Promise<void> {
  const deadline = performance.now() + LONGEST_WAIT_MS;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new StoryError(`Waited in vain until ${what}.`);
    await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS));
  }
}
