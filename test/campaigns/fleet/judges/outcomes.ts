import type { Evidence } from '../campaign.js';
import type { Story } from '../replay.js';
import { verdict, type Verdict } from '../../support/verdict.js';

/** Every workflow has ended within the time. */
export function judgeEnds({ plan, observations }: Evidence): Verdict {
  const client = observations[0]?.outcomes ?? [];
  const open = plan.jobs.filter((_, index) => client[index] === undefined).map(({ workflowId }) => workflowId);
  return verdict(
    'ends',
    open.map((workflowId) => `"${workflowId}" has no outcome`),
    `${String(plan.jobs.length - open.length)} of ${String(plan.jobs.length)} workflows have ended`,
  );
}

/** All observers are told the same outcome. */
export function judgeOutcomes({ plan, observations }: Evidence): Verdict {
  const faults: string[] = [];
  for (const [index, { workflowId }] of plan.jobs.entries()) {
    const seen = new Set(
      observations
        .map(({ outcomes }) => outcomes[index])
        .filter((outcome) => outcome !== undefined)
        .map((outcome) => JSON.stringify(outcome)),
    );
    if (seen.size > 1) faults.push(`"${workflowId}" has ${String(seen.size)} outcomes`);
  }
  const numbers = `${String(observations.length)} observers compared ${String(plan.jobs.length)} outcomes`;
  if (observations.length < 2) return { judge: 'outcomes', is: 'void', says: numbers };
  return verdict('outcomes', faults, numbers);
}

/** What is in an outcome was done by a body that ended well, and was not begun again by anybody of that epoch or a later one. */
export function judgeRecord({ plan, observations }: Evidence, { bodies }: Story): Verdict {
  const faults: string[] = [];
  const byRun = new Map(bodies.map((body) => [body.run, body]));
  const byStep = groupByStep(bodies);
  let steps = 0;
  let unrecorded = bodies.filter(({ workflowId }) => workflowId.startsWith('job ')).length;
  for (const [index, job] of plan.jobs.entries()) {
    const runs = observations[0]?.outcomes[index];
    if (runs === undefined) continue;
    if (runs.length !== job.steps) faults.push(`"${job.workflowId}" has ${String(runs.length)} results`);
    for (const [step, run] of runs.entries()) {
      steps += 1;
      unrecorded -= 1;
      const body = byRun.get(run);
      if (body?.workflowId !== job.workflowId || body.step !== step || body.how !== 'done') {
        faults.push(`step ${String(step)} of "${job.workflowId}" has a result that no body of it has given`);
        continue;
      }
      const again = (byStep.get(`${job.workflowId} ${String(step)}`) ?? []).find(
        (other) => other.began > body.began && other.epoch >= body.epoch,
      );
      if (again !== undefined)
        faults.push(`step ${String(step)} of "${job.workflowId}" was begun again after its result`);
    }
  }
  return verdict('record', faults, `${String(steps)} results, ${String(unrecorded)} runs of bodies left no result`);
}

function groupByStep<Each extends { readonly workflowId: string; readonly step: number }>(
  bodies: readonly Each[],
): Map<string, Each[]> {
  const groups = new Map<string, Each[]>();
  for (const body of bodies) {
    const name = `${body.workflowId} ${String(body.step)}`;
    const group = groups.get(name);
    if (group === undefined) groups.set(name, [body]);
    else group.push(body);
  }
  return groups;
}
