import type { BodyRun } from './outside-world.js';
import { recordedSteps } from './records.js';
import type { Story } from './story.js';
import { counted, layTable, printable } from './text.js';
import { BODIES, type OrderFacts, runsOfStep, violationsOf } from './verify.js';

const MAX_ROWS = 40;
const HEADING = ['order', 'status', 'what happened to it', 'epochs', ...BODIES.map((step) => `${step} ran`)];

/** Shows what became of each order, and holds it against the promises. Returns whether all of them were kept. */
export async function report(story: Story): Promise<boolean> {
  const { narrator } = story;
  narrator.stage('What became of the orders, by the account of the outside world');
  const all = await gatherFacts(story);
  for (const line of layTable(HEADING, all.slice(0, MAX_ROWS).map(rowOf))) narrator.say(line);
  if (all.length > MAX_ROWS) narrator.say(`… and ${String(all.length - MAX_ROWS)} more.`);
  return conclude(story, all);
}

async function gatherFacts(story: Story): Promise<readonly OrderFacts[]> {
  const { holdfast } = story;
  const runs = groupByOrder(story.bodyRuns());
  const all: OrderFacts[] = [];
  for (const { order, role } of story.cast) {
    const { status, epoch } = await holdfast.admin.get(order.id);
    all.push({
      order,
      role,
      status,
      epoch,
      recorded: await recordedSteps(holdfast, order.id),
      recordedBefore: story.recordedAtInterruption(order.id),
      runs: runs.get(order.id) ?? [],
    });
  }
  return all;
}

function groupByOrder(runs: readonly BodyRun[]): ReadonlyMap<string, readonly BodyRun[]> {
  const groups = new Map<string, BodyRun[]>();
  for (const run of runs) {
    const group = groups.get(run.orderId);
    if (group === undefined) groups.set(run.orderId, [run]);
    else group.push(run);
  }
  return groups;
}

function rowOf(facts: OrderFacts): readonly string[] {
  return [
    printable(facts.order.id),
    facts.status,
    whatHappened(facts),
    String(facts.epoch),
    ...BODIES.map((step) => timesText(runsOfStep(facts, step))),
  ];
}

function timesText(times: number): string {
  return ['never', 'once', 'twice'][times] ?? `${String(times)} times`;
}

function whatHappened({ role, epoch }: OrderFacts): string {
  switch (role) {
    case 'killed':
      return 'killed in charge and recovered';
    case 'zombie':
      return 'frozen in charge, taken over (zombie)';
    case 'cancelled':
      return 'cancelled and resumed';
    case 'undisturbed':
      return epoch === 1 ? 'completed' : 'recovered while being packed';
  }
}

function conclude(story: Story, all: readonly OrderFacts[]): boolean {
  const { narrator } = story;
  const violations = [...story.violations, ...all.flatMap(violationsOf)];
  narrator.blank();
  if (violations.length > 0) {
    narrator.bad(`FAILED: ${counted(violations.length, 'promise')} broken.`);
    narrator.sayEach(violations, 20);
    return false;
  }
  const recorded = all.reduce((sum, facts) => sum + facts.recorded.length, 0);
  const again = all.flatMap((facts) =>
    BODIES.filter((step) => runsOfStep(facts, step) > 1).map((step) => `${step} of ${printable(facts.order.id)}`),
  );
  narrator.good(
    `OK: ${counted(all.length, 'order')} succeeded; each of ${counted(recorded, 'recorded step')} was recorded once and never run again.`,
  );
  narrator.good(`    Only what was interrupted ran twice, with the same idempotency key: ${again.join(', ')}.`);
  return true;
}
