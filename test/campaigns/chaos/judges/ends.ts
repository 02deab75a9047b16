import { ms, verdict, type Verdict } from '../../support/verdict.js';
import { countBy, type Story } from './story.js';

const TERMINAL: ReadonlySet<string> = new Set(['SUCCESS', 'ERROR', 'CANCELLED', 'DEAD_LETTER']);

/** When everybody is well, everything ends in time: nothing is left that nobody runs. */
export function judgeEnds(story: Story): Verdict {
  const { record, options } = story;
  const ended = new Set(record.outcomes.map(({ workflow_id }) => workflow_id));
  const faults: string[] = [];
  for (const { workflow_id: workflowId, status } of record.statuses) {
    if (!TERMINAL.has(status)) faults.push(`"${workflowId}" is ${status}`);
    else if (!ended.has(workflowId)) faults.push(`"${workflowId}" is ${status} and has no outcome`);
  }
  const healedAt = story.phaseAt('heal');
  const lastAt = record.outcomes.reduce((last, { at }) => Math.max(last, at), healedAt);
  const kinds = [...countBy(record.statuses, ({ status }) => status)].map(([status, n]) => `${String(n)} ${status}`);
  return verdict(
    'ends',
    faults,
    `${kinds.join(', ')}; the last one ${ms(lastAt - healedAt)} after everybody was well, allowed ${ms(options.healMs)}`,
  );
}

/** Timers that a process which has nothing to do may have more than right after its launch. */
const MORE_TIMERS = 4;

/** Nothing is left over in the processes, and nothing went wrong unseen. */
export function judgeTidiness(story: Story): Verdict {
  const faults: string[] = [];
  for (const { who, report } of story.of('report')) {
    if (report.running > 0) faults.push(`${who} still runs ${String(report.running)} executions`);
    if (report.timers > report.timersAtLaunch + MORE_TIMERS) {
      faults.push(`${who} has ${String(report.timers)} timers, ${String(report.timersAtLaunch)} when it was launched`);
    }
  }
  for (const { process, count, limit } of story.of('connections')) {
    if (count > limit) faults.push(`${process} has ${String(count)} connections`);
  }
  for (const { process, happened } of story.of('process')) {
    if (happened === 'crashed') faults.push(`${process} ended by itself`);
  }
  const documented = new Set(story.documentedCodes);
  const errors = story.of('error');
  for (const { who, where, code, message } of errors) {
    if (where === 'unhandled' || where === 'warning') faults.push(`${where} in ${who}: ${message}`);
    else if (!documented.has(code)) faults.push(`an error that is not documented in ${who}: ${message}`);
  }
  const told = [...countBy(errors, ({ code }) => code)].map(([code, count]) => `${String(count)} ${code}`);
  return verdict(
    'tidiness',
    faults,
    `${String(story.of('report').length)} executors had nothing left; errors: ${told.join(', ') || 'none'}`,
  );
}
