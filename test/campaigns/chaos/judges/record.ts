import { verdict, type Verdict } from '../../support/verdict.js';
import type { Change } from '../evidence.js';
import { bodyIn, groupBy, type Story } from './story.js';

/** The versions of each workflow are 1, 2, 3 … : every write saw the one before it, and a batch of n steps raised it by n. */
export function judgeVersions({ record, deleted }: Story): Verdict {
  const faults: string[] = [];
  const recorded = groupBy(record.steps, ({ workflow_id }) => workflow_id);
  for (const [workflowId, changes] of groupBy(record.changes, ({ workflow_id }) => workflow_id)) {
    const versions = new Set((recorded.get(workflowId) ?? []).map(({ version }) => version));
    let version: number | null = null;
    for (const change of changes) {
      const fault = versionFault(change, version, deleted.has(workflowId) ? undefined : versions);
      if (fault !== undefined) faults.push(`"${workflowId}": ${fault}`);
      version = change.version;
    }
  }
  return verdict('versions', faults, `${String(record.changes.length)} changes of rows`);
}

function versionFault(change: Change, last: number | null, steps: ReadonlySet<number> | undefined): string | undefined {
  const { verb, version_before: before, version } = change;
  if (verb === 'INSERT') return last === null ? undefined : `made anew at version ${String(last)}`;
  if (before !== last) return `version ${String(before)} follows ${String(last)}`;
  if (verb === 'DELETE' || before === null || version === null) return undefined;
  if (version < before) return `version ${String(version)} follows ${String(before)}`;
  if (version === before) {
    const isSame = change.token === change.token_before && change.epoch === change.epoch_before;
    return isSame ? undefined : `another owner at the same version ${String(version)}`;
  }
  if (version === before + 1 || steps === undefined) return undefined;
  for (let each = before + 1; each <= version; each++) {
    if (!steps.has(each)) return `${String(before)} to ${String(version)} without a result of ${String(each)}`;
  }
  return undefined;
}

/** Endings that only the owner can bring about. */
const OWNERS_ENDINGS: ReadonlySet<string> = new Set(['SUCCESS', 'ERROR', 'SUSPENDED']);

/** One token an epoch, one epoch a token; and whoever got it is the only process that writes until it is gone. */
export function judgeOwners({ record }: Story): Verdict {
  const faults: string[] = [];
  const epochOf = new Map<string, string>();
  let epochs = 0;
  for (const [workflowId, events] of writesInOrder(record)) {
    let owner: { readonly epoch: number; readonly app: string } | undefined;
    let highest = 0;
    for (const event of events) {
      if ('relation' in event) {
        const fault = writtenFault(event, owner, highest);
        if (fault !== undefined) faults.push(`"${workflowId}": ${fault}`);
        continue;
      }
      const { token, token_before: before, epoch, app, status } = event;
      if (token !== null && token !== before) {
        epochs += 1;
        const place = `${workflowId} ${String(epoch)}`;
        const known = epochOf.get(token);
        if (known !== undefined && known !== place) faults.push(`a token of "${known}" is used for "${place}"`);
        epochOf.set(token, place);
        if (epoch === null || epoch <= highest) faults.push(`"${workflowId}": epoch ${String(epoch)} again`);
        else if (epoch !== highest + 1) faults.push(`"${workflowId}": epoch ${String(epoch)} after ${String(highest)}`);
        highest = Math.max(highest, epoch ?? 0);
        owner = { epoch: epoch ?? 0, app };
      } else if (before !== null && owner !== undefined && app !== owner.app) {
        // Who takes it over moves the ownership that ends to a place of its own, at the same version.
        const isWrite = token === before && event.version !== event.version_before;
        if (isWrite || OWNERS_ENDINGS.has(status ?? '')) {
          faults.push(`"${workflowId}": ${app} wrote in epoch ${String(owner.epoch)} of ${owner.app}`);
        }
      }
    }
  }
  return verdict('owners', faults, `${String(epochs)} ownerships of ${String(record.statuses.length)} workflows`);
}

/** Outcomes are recorded after the row has lost its token, in the same transaction: the last owner's. */
function writtenFault(
  written: Story['record']['written'][number],
  owner: { readonly epoch: number; readonly app: string } | undefined,
  highest: number,
): string | undefined {
  const { verb, epoch, app, relation } = written;
  if (verb !== 'INSERT' || epoch === 0 || owner === undefined) return undefined;
  if (epoch !== highest)
    return `a ${relation} of epoch ${String(epoch)} after the beginning of epoch ${String(highest)}`;
  if (relation === 'step_result' && app !== owner.app) return `${app} wrote a ${relation} for ${owner.app}`;
  return undefined;
}

function writesInOrder({
  changes,
  written,
}: Story['record']): Map<string, (Change | Story['record']['written'][number])[]> {
  const all = [...changes, ...written].sort((a, b) => a.n - b.n);
  return groupBy(all, ({ workflow_id }) => workflow_id);
}

/** Results and outcomes are written once, and never changed; each was made by a body of the epoch that recorded it. */
export function judgeResults({ record, deleted }: Story): Verdict {
  const faults: string[] = [];
  const there = new Set<string>();
  for (const { workflow_id: workflowId, relation, verb, seq } of record.written) {
    const place = `${relation} ${workflowId} ${String(seq)}`;
    if (verb === 'UPDATE') faults.push(`the ${relation} ${String(seq ?? '')} of "${workflowId}" was changed`);
    else if (verb === 'DELETE' && !deleted.has(workflowId)) {
      faults.push(`the ${relation} ${String(seq ?? '')} of "${workflowId}" was deleted`);
    } else if (verb === 'INSERT' && there.has(place)) {
      faults.push(`there was a second ${relation} ${String(seq ?? '')} of "${workflowId}"`);
    }
    if (verb === 'INSERT') there.add(place);
  }
  for (const { workflow_id: workflowId, name, output, epoch, kind } of record.steps) {
    const body = bodyIn(output);
    if ((kind !== 'step' && kind !== 'transaction') || body === undefined || epoch === 0) continue;
    if (body.epoch !== epoch) {
      faults.push(`"${name}" of "${workflowId}" is of epoch ${String(epoch)}, its body was of ${String(body.epoch)}`);
    }
  }
  return verdict(
    'results',
    faults,
    `${String(record.steps.length)} results, ${String(record.outcomes.length)} outcomes`,
  );
}
