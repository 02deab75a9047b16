import type { Holdfast } from '../../src/index.js';
import type { Order } from './checkout.js';
import type { Narrator } from './narrator.js';
import { readBodyRuns, type BodyRun } from './outside-world.js';
import type { Roles } from './roles.js';
import { counted, layTable, printable } from './text.js';

const STEPS = ['reserve', 'charge', 'ship'] as const;
/** More rows than that are not read; the checks are made for all orders. */
const MOST_ROWS = 40;

interface Finding {
  readonly order: Order;
  readonly row: readonly string[];
  readonly problems: readonly string[];
  readonly repeated: number;
}

/** Prints what each order did, and returns what is not as it should be. The judge is the outside world's log. */
export async function report(
  narrator: Narrator,
  onlooker: Holdfast,
  roles: Roles,
  worldLog: string,
): Promise<readonly string[]> {
  narrator.stage('What each order did, and how often the body of each step was run');
  const orders = [roles.killed, roles.zombie, roles.cancelled, ...roles.others].filter((order) => order !== undefined);
  const runs = groupRuns(worldLog);
  const findings: Finding[] = [];
  for (const order of orders) findings.push(await examine(onlooker, roles, order, runs.get(order.id) ?? []));
  const heading = ['order', 'status', 'epochs', ...STEPS, 'what happened'];
  for (const line of layTable(
    heading,
    findings.slice(0, MOST_ROWS).map(({ row }) => row),
  ))
    narrator.say(line);
  if (findings.length > MOST_ROWS) narrator.say(`… and ${String(findings.length - MOST_ROWS)} orders more.`);
  const problems = findings.flatMap((finding) => finding.problems);
  if (problems.length === 0) {
    const repeated = findings.reduce((sum, finding) => sum + finding.repeated, 0);
    narrator.good(
      `   ${counted(orders.length, 'order')}: every recorded step ran once; ${counted(repeated, 'interrupted step')} ran again. One outcome each.`,
    );
  }
  return problems;
}

async function examine(onlooker: Holdfast, roles: Roles, order: Order, runs: readonly BodyRun[]): Promise<Finding> {
  const { status, epoch } = await onlooker.admin.get(order.id);
  const steps = (await onlooker.admin.steps(order.id)).items;
  const problems: string[] = [];
  const say = (problem: string): void => void problems.push(`Order ${printable(order.id)}: ${problem}`);
  if (status !== 'SUCCESS') say(`is ${status}`);
  const counts: string[] = [];
  let repeated = 0;
  for (const name of STEPS) {
    const mine = runs.filter((run) => run.step === name);
    const recorded = steps.find((step) => step.name === name);
    const expected = name === 'charge' && (order === roles.killed || order === roles.zombie) ? 2 : undefined;
    counts.push(String(mine.length));
    repeated += Math.max(0, mine.length - 1);
    if (recorded === undefined) say(`"${name}" is not on record`);
    else if (mine.filter((run) => run.epoch === recorded.epoch).length !== 1)
      say(`"${name}" did not run once where it was recorded`);
    else if (mine.some((run) => run.epoch > recorded.epoch)) say(`"${name}" ran again after it had been recorded`);
    if (mine.length > 1 && (order === roles.cancelled || epoch === 1))
      say(`"${name}" ran more than once without having been interrupted`);
    if (expected !== undefined && mine.length !== expected)
      say(`"${name}" ran ${String(mine.length)} times, not ${String(expected)}`);
    if (new Set(mine.map((run) => run.idempotencyKey)).size > 1) say(`"${name}" showed different idempotency keys`);
  }
  return {
    order,
    row: [printable(order.id), status, String(epoch), ...counts, fateOf(order, roles, epoch)],
    problems,
    repeated,
  };
}

function fateOf(order: Order, roles: Roles, epoch: number): string {
  if (order === roles.killed) return 'killed in "charge", recovered';
  if (order === roles.zombie) return 'frozen in "charge", taken over';
  if (order === roles.cancelled) return 'cancelled, resumed';
  return epoch > 1 ? 'its worker was killed, recovered' : 'completed';
}

function groupRuns(worldLog: string): Map<string, BodyRun[]> {
  const groups = new Map<string, BodyRun[]>();
  for (const run of readBodyRuns(worldLog)) {
    const group = groups.get(run.orderId);
    if (group === undefined) groups.set(run.orderId, [run]);
    else group.push(run);
  }
  return groups;
}
