import type { Evidence } from '../evidence.js';
import type { CallKind, Entry } from '../ledger/entry.js';

/** A call and how it ended: one that was never answered is unknown. */
export interface Call {
  readonly kind: CallKind;
  readonly workflowId: string;
  readonly value: string | undefined;
  readonly how: 'ok' | 'fail' | 'unknown';
}

export type Of<What extends Entry['what']> = Extract<Entry, { what: What }>;

/** The evidence, sorted. */
export interface Story extends Evidence {
  readonly calls: readonly Call[];
  /** Workflows that may have been deleted. */
  readonly deleted: ReadonlySet<string>;
  /** Those of whose families one may have been cancelled, or deleted by force. What a retention deletes must hurt nobody. */
  readonly interfered: ReadonlySet<string>;
  of<What extends Entry['what']>(what: What): readonly Of<What>[];
  /** Executions, as `workflow epoch`, whose workflow another executor has taken over. */
  readonly taken: ReadonlySet<string>;
  /** When a phase began, by the ledger's clock. */
  phaseAt(phase: Of<'phase'>['phase']): number;
}

export function tellStory(evidence: Evidence): Story {
  const { entries } = evidence;
  const calls = callsOf(entries);
  const touched = (...kinds: CallKind[]): ReadonlySet<string> =>
    new Set(
      calls.filter(({ kind, how }) => kinds.includes(kind) && how !== 'fail').map(({ workflowId }) => workflowId),
    );
  const byWhat = groupBy(entries, ({ what }) => what);
  const story: Story = {
    ...evidence,
    calls,
    deleted: touched('delete', 'retain'),
    interfered: familiesOf(evidence, touched('delete', 'cancel')),
    taken: new Set(
      evidence.record.ended
        .filter(({ how }) => how === 'taken over')
        .map(({ workflow_id, epoch }) => `${workflow_id} ${String(epoch)}`),
    ),
    of: <What extends Entry['what']>(what: What) => (byWhat.get(what) ?? []) as unknown as readonly Of<What>[],
    phaseAt: (phase) => story.of('phase').find((entry) => entry.phase === phase)?.at ?? Infinity,
  };
  return story;
}

/** The workflow at the head of a family: IDs of children are those of their parents, with a number and a mark at their end. */
function headOf(workflowId: string): string {
  return workflowId.replace(/(\.\d+\.[0-9a-f]+)+$/, '');
}

function familiesOf({ record }: Evidence, members: ReadonlySet<string>): ReadonlySet<string> {
  const heads = new Set([...members].map(headOf));
  const others = record.statuses.filter(({ workflow_id }) => heads.has(headOf(workflow_id)));
  return new Set([...members, ...heads, ...others.map(({ workflow_id }) => workflow_id)]);
}

function callsOf(entries: readonly Entry[]): readonly Call[] {
  const settled = new Map<string, 'ok' | 'fail' | 'unknown'>();
  for (const entry of entries) {
    if (entry.what === 'ok' || entry.what === 'fail' || entry.what === 'unknown') settled.set(entry.op, entry.what);
  }
  return entries.flatMap((entry) =>
    entry.what === 'invoke'
      ? [
          {
            kind: entry.kind,
            workflowId: entry.workflowId,
            value: entry.value,
            how: settled.get(entry.op) ?? ('unknown' as const),
          },
        ]
      : [],
  );
}

export function groupBy<Item, Key>(items: readonly Item[], key: (item: Item) => Key): Map<Key, Item[]> {
  const groups = new Map<Key, Item[]>();
  for (const item of items) {
    const group = groups.get(key(item));
    if (group === undefined) groups.set(key(item), [item]);
    else group.push(item);
  }
  return groups;
}

export function countBy<Item>(items: readonly Item[], key: (item: Item) => string): Map<string, number> {
  const counts = new Map<string, number>();
  for (const item of items) counts.set(key(item), (counts.get(key(item)) ?? 0) + 1);
  return counts;
}

/** What a step's result says of the body that made it; undefined: it is not the result of a body. */
export function bodyIn(output: string | null): { readonly epoch: number; readonly run: string } | undefined {
  const found = /^"[^/]*\/(\d+)\/([0-9a-f-]{36})"$/.exec(output ?? '');
  return found === null ? undefined : { epoch: Number(found[1]), run: found[2] ?? '' };
}
