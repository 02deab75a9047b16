import type { MemoryDatabase } from '../../src/store/memory/memory-database.js';
import { isTerminal, type OutcomeRow, type ResultRow, type Workflow } from '../../src/store/memory/tables.js';
import type { Counts, Judge } from './violations.js';
import type { Actor, World } from './world.js';

/** An outcome that a workflow had, and for how long: a person may take it away. */
export interface KnownOutcome {
  readonly status: string;
  readonly output: string | null;
  readonly error: string | null;
  readonly from: number;
  until: number;
}

/** How an execution came to lose its workflow. */
export interface Loss {
  readonly at: number;
  /** `own`: by a write of its own process. */
  readonly how: 'takeover' | 'control' | 'own';
  /** By a call whose answer its process has not got. */
  readonly isUnheard: boolean;
}

interface Seen {
  version: number;
  token: string | null;
  epoch: number;
  status: string;
  owner: string;
  outcome: OutcomeRow | null;
  audits: number;
  readonly results: Map<number, ResultRow>;
}

/** Whose body a recorded value came from. */
export type TokenOfBody = (output: string) => string | undefined;

/** Executions that owned more than one epoch's worth of rows would be seen here: what triggers on the tables are to PostgreSQL. */
const MOST_WRITES_AT_ONCE = 3;

/**
 * Looks at the whole record after each transaction, and holds what has changed against what may. It knows the tables, and nothing of
 * the code that writes them.
 */
export class Auditor {
  readonly outcomes = new Map<string, KnownOutcome[]>();
  readonly losses = new Map<string, Loss>();
  readonly #db: MemoryDatabase;
  readonly #world: World;
  readonly #counts: Counts;
  readonly #violate: (judge: Judge, text: string) => void;
  readonly #tokenOfBody: TokenOfBody;
  readonly #seen = new Map<string, Seen>();
  readonly #tokens = new Set<string>();

  constructor(parts: {
    readonly db: MemoryDatabase;
    readonly world: World;
    readonly counts: Counts;
    readonly violate: (judge: Judge, text: string) => void;
    readonly tokenOfBody: TokenOfBody;
  }) {
    this.#db = parts.db;
    this.#world = parts.world;
    this.#counts = parts.counts;
    this.#violate = parts.violate;
    this.#tokenOfBody = parts.tokenOfBody;
  }

  /** Carries a transaction of a process out. */
  watch<Reply>(actor: Actor, transaction: () => Reply, isUnheard: boolean): Reply {
    try {
      const reply = transaction();
      if (isRefusal(reply)) this.#counts.refusedWrites += 1;
      return reply;
    } finally {
      if (this.#look(actor, isUnheard) && isUnheard) this.#counts.unheard += 1;
    }
  }

  isOwner(workflowId: string, token: string): boolean {
    return this.#db.workflows.get(workflowId)?.ownerToken === token;
  }

  /** Whether anything has changed. */
  #look(actor: Actor, isUnheard: boolean): boolean {
    let hasChanged = false;
    let hasOwner = false;
    for (const workflow of this.#db.workflows.values()) {
      const seen = this.#seen.get(workflow.workflowId);
      if (seen?.version === workflow.recordVersion && !this.#hasMoved(workflow, seen)) continue;
      hasChanged = true;
      if (seen === undefined) this.#begin(workflow);
      else this.#compare(workflow, seen, actor, isUnheard);
      hasOwner ||= workflow.ownerToken !== null;
    }
    if (hasOwner) this.#countLive();
    return hasChanged;
  }

  /** Whether something was written that did not raise the version. */
  #hasMoved(workflow: Workflow, seen: Seen): boolean {
    const hasMoved =
      workflow.ownerToken !== seen.token ||
      workflow.status !== seen.status ||
      workflow.epoch !== seen.epoch ||
      workflow.outcome !== seen.outcome ||
      workflow.results.size !== seen.results.size;
    if (hasMoved) this.#violate('versions', `${workflow.workflowId} was written without raising its version`);
    return hasMoved;
  }

  #begin(workflow: Workflow): void {
    const { workflowId, recordVersion, ownerToken } = workflow;
    if (recordVersion !== 1) this.#violate('versions', `${workflowId} begins with version ${String(recordVersion)}`);
    if (ownerToken !== null) this.#isNew(workflowId, ownerToken);
    this.#seen.set(workflowId, { ...stateOf(workflow, 0), results: new Map(workflow.results) });
  }

  #compare(workflow: Workflow, seen: Seen, actor: Actor, isUnheard: boolean): void {
    const { workflowId, recordVersion } = workflow;
    const audits = this.#db.audit.get(workflowId)?.length ?? 0;
    const isControlled = audits > seen.audits;
    const raised = recordVersion - seen.version;
    if (raised < 0 || raised > MOST_WRITES_AT_ONCE) {
      this.#violate('versions', `${workflowId} went from version ${String(seen.version)} to ${String(recordVersion)}`);
    }
    this.#judgeOwner(workflow, seen, { actor, isUnheard, isControlled });
    this.#judgeResults(workflow, seen, isControlled);
    this.#judgeOutcome(workflow, seen, isControlled);
    Object.assign(seen, stateOf(workflow, audits));
  }

  #judgeOwner(
    workflow: Workflow,
    seen: Seen,
    {
      actor,
      isUnheard,
      isControlled,
    }: { readonly actor: Actor; readonly isUnheard: boolean; readonly isControlled: boolean },
  ): void {
    const { workflowId, ownerToken, epoch, status } = workflow;
    if (status === 'SUSPENDED' && seen.status !== 'SUSPENDED') this.#counts.suspended += 1;
    if ((ownerToken !== null) !== (status === 'PENDING')) {
      this.#violate('versions', `${workflowId} is ${status} ${ownerToken === null ? 'without' : 'with'} a token`);
    }
    if (ownerToken === seen.token) {
      if (epoch !== seen.epoch) this.#violate('owner-writes', `the epoch of ${workflowId} moved under one token`);
      return;
    }
    if (ownerToken !== null) {
      this.#isNew(workflowId, ownerToken);
      if (epoch !== seen.epoch + 1) {
        this.#violate('owner-writes', `${workflowId} went from epoch ${String(seen.epoch)} to ${String(epoch)}`);
      }
      if (workflow.ownerships.at(-1)?.epoch !== epoch) {
        this.#violate('owner-writes', `epoch ${String(epoch)} of ${workflowId} has no row of its own`);
      }
    }
    if (seen.token === null) return;
    const isTakeover = ownerToken !== null || status === 'DEAD_LETTER';
    this.losses.set(seen.token, {
      at: this.#world.now,
      how: isTakeover ? 'takeover' : isControlled ? 'control' : 'own',
      isUnheard,
    });
    if (!isTakeover) return;
    this.#counts.takeovers += 1;
    const lease = this.#db.executors.find(
      ({ executorId, incarnation }) => `${executorId} ${String(incarnation)}` === seen.owner,
    );
    if (lease !== undefined && lease.leaseUntil > this.#world.now) {
      this.#violate('takeovers', `${actor.name} took ${workflowId} from ${seen.owner}, whose lease had not run out`);
    }
  }

  #judgeResults(workflow: Workflow, seen: Seen, isControlled: boolean): void {
    const { workflowId, results } = workflow;
    for (const [seq, known] of seen.results) {
      const now = results.get(seq);
      if (now === known) continue;
      if (now !== undefined) this.#violate('results-stay', `result ${String(seq)} of ${workflowId} was changed`);
      else if (!isControlled) this.#violate('results-stay', `result ${String(seq)} of ${workflowId} is gone`);
      seen.results.delete(seq);
    }
    for (const [seq, result] of results) {
      if (seen.results.has(seq)) continue;
      seen.results.set(seq, result);
      // A cancellation with compensation writes the marker of the rollback itself.
      if (result.kind !== 'rollback' || !isControlled) this.#judgeResult(workflow, seen, result);
    }
  }

  #judgeResult(workflow: Workflow, seen: Seen, result: ResultRow): void {
    const { workflowId } = workflow;
    const which = `result ${String(result.seq)} of ${workflowId}`;
    if (result.recordVersion <= seen.version || result.recordVersion > workflow.recordVersion) {
      this.#violate('versions', `${which} has version ${String(result.recordVersion)}`);
    }
    const writer = this.#writerOf(workflowId, result);
    if (seen.token === null || result.epoch !== seen.epoch) {
      this.#violate('owner-writes', `${which} was written by nobody who owned it`);
    } else if (writer !== undefined && writer !== seen.token) {
      this.#violate('owner-writes', `${which} is of ${writer}, and ${seen.token} was the owner`);
    }
    if (result.kind === 'rollback') this.#judgeDeadline(workflow, result.error);
    const intent = workflow.intents.get(result.seq);
    if (result.kind === 'sleep' && intent !== undefined && (intent.wakeAt ?? 0) > this.#world.now) {
      this.#violate('timers', `${which}, a sleep, ended ${String((intent.wakeAt ?? 0) - this.#world.now)} ms early`);
    }
    if (result.kind === 'workflow' && result.childId !== null) {
      const known = this.outcomes.get(result.childId) ?? [];
      if (!known.some(({ output, error }) => output === result.output && error === result.error)) {
        this.#violate('same-outcome', `${which} is no outcome that ${result.childId} has had`);
      }
    }
  }

  /** Whose work a result says that it is. */
  #writerOf(workflowId: string, { kind, name, output, error }: ResultRow): string | undefined {
    // What became of an undoable one is found out, and may be the work of another execution.
    if (kind === 'step' && name !== 'undoable' && output !== null) return this.#tokenOfBody(output);
    return kind === 'rollback' ? signatureIn(workflowId, { output, error }) : undefined;
  }

  #judgeOutcome(workflow: Workflow, seen: Seen, isControlled: boolean): void {
    const { workflowId, outcome, status } = workflow;
    if (outcome === seen.outcome) return;
    const known = this.outcomes.get(workflowId) ?? [];
    this.outcomes.set(workflowId, known);
    if (seen.outcome !== null) {
      if (!isControlled) this.#violate('one-outcome', `the outcome of ${workflowId} was changed`);
      const last = known.at(-1);
      if (last !== undefined) last.until = this.#world.now;
    }
    if (outcome === null) return;
    known.push({ ...outcome, from: this.#world.now, until: Infinity });
    this.#judgeDeadline(workflow, outcome.error);
    if (!isTerminal(status)) this.#violate('one-outcome', `${workflowId} has an outcome and is ${status}`);
    if (isControlled || status === 'DEAD_LETTER') return;
    // A rollback ends with the error that it began with, whoever carries it out.
    if ([...workflow.results.values()].some(({ kind, error }) => kind === 'rollback' && error === outcome.error))
      return;
    const writer = signatureIn(workflowId, outcome);
    if (seen.token === null || (writer !== undefined && writer !== seen.token)) {
      this.#violate(
        'owner-writes',
        `the outcome of ${workflowId} is of ${String(writer)}, not of ${String(seen.token)}`,
      );
    }
  }

  #judgeDeadline({ workflowId, deadline, results }: Workflow, error: string | null): void {
    if (error?.includes(`"WorkflowTimeoutError"`) !== true || [...results.values()].some((row) => row.error === error))
      return;
    if ((deadline ?? Infinity) > this.#world.now) this.#violate('timers', `${workflowId} ran out of time too early`);
  }

  #isNew(workflowId: string, token: string): void {
    if (this.#tokens.has(token)) this.#violate('owner-writes', `token ${token} of ${workflowId} was used before`);
    this.#tokens.add(token);
  }

  #countLive(): void {
    const live = new Map<string, number>();
    for (const { status, queue, executorId, incarnation } of this.#db.workflows.values()) {
      if (status !== 'PENDING' || queue === null) continue;
      const place = queue === 'one' ? queue : `${queue} in ${String(executorId)} ${String(incarnation)}`;
      const count = (live.get(place) ?? 0) + 1;
      live.set(place, count);
      if (count > 1) this.#violate('limits', `${String(count)} run in queue ${place}`);
    }
  }
}

function stateOf(workflow: Workflow, audits: number): Omit<Seen, 'results'> {
  const { recordVersion: version, ownerToken: token, epoch, status, outcome, executorId, incarnation } = workflow;
  return { version, token, epoch, status, outcome, audits, owner: `${String(executorId)} ${String(incarnation)}` };
}

/** Simulated workflows say in their outcome which execution made it. */
function signatureIn(workflowId: string, { output, error }: Pick<OutcomeRow, 'output' | 'error'>): string | undefined {
  for (const [, token, madeFor] of (output ?? error ?? '').matchAll(/made by (\S+) for ([^;]+);/g)) {
    if (madeFor === workflowId) return token;
  }
  return undefined;
}

/** Whether a write was refused since somebody else owns the workflow. */
function isRefusal(reply: unknown): boolean {
  const { answer } = (reply ?? {}) as { readonly answer?: { readonly kind?: string } };
  return answer?.kind === 'lost';
}
