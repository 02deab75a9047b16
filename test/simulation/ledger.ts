import type { FoundOutcome } from '../../src/store/store.js';
import type { Auditor } from './auditor.js';
import type { Counts, Judge } from './violations.js';
import type { SimulatedActor } from './simulated-process.js';
import type { World } from './world.js';
import type { MemoryDatabase } from '../../src/store/memory/memory-database.js';

interface Body {
  readonly workflowId: string;
  readonly seq: number;
  readonly token: string;
}

interface Run {
  attempt: number;
  isOver: boolean;
}

/** What is known of the bodies that run, and of the values that workflows and observers get: the effects, seen from outside. */
export class Ledger {
  readonly told: { readonly workflowId: string; readonly what: string }[] = [];
  readonly #auditor: Auditor;
  readonly #db: MemoryDatabase;
  readonly #world: World;
  readonly #counts: Counts;
  readonly #violate: (judge: Judge, text: string) => void;
  readonly #bodies: Body[];
  /** By token and number. */
  readonly #runs = new Map<string, Run>();
  /** When the answer came that a token still owns. */
  readonly #verifiedAt = new Map<string, number>();
  /** Bodies that began, by workflow and number. */
  readonly #begun = new Set<string>();
  /** The last effect of each undoable step, by workflow and number. */
  readonly #effects = new Map<string, string>();
  readonly #undone = new Set<string>();

  constructor(parts: {
    readonly auditor: Auditor;
    readonly db: MemoryDatabase;
    readonly world: World;
    readonly counts: Counts;
    readonly violate: (judge: Judge, text: string) => void;
    readonly bodies: Body[];
  }) {
    this.#auditor = parts.auditor;
    this.#db = parts.db;
    this.#world = parts.world;
    this.#counts = parts.counts;
    this.#violate = parts.violate;
    this.#bodies = parts.bodies;
  }

  verified(token: string): void {
    this.#verifiedAt.set(token, this.#world.now);
  }

  /** Returns the body's ID, which is also what it is to return. */
  begin(actor: SimulatedActor, body: Body & { readonly attempt: number }): string {
    const { workflowId, seq, token, attempt } = body;
    const which = `body ${String(seq)} of ${workflowId}, attempt ${String(attempt)} of ${token}`;
    this.#counts.bodies += 1;
    const place = `${workflowId} ${String(seq)}`;
    if (this.#begun.has(place)) this.#counts.resumedBodies += 1;
    this.#begun.add(place);
    const run = this.#runs.get(`${token} ${String(seq)}`);
    if (run === undefined ? attempt !== 1 : !run.isOver || attempt !== run.attempt + 1) {
      this.#violate('bodies', `${which} began out of turn`);
    }
    this.#runs.set(`${token} ${String(seq)}`, { attempt, isOver: false });
    if (!this.#auditor.isOwner(workflowId, token)) this.#judgeLate(actor, body, which);
    else if (this.#db.workflows.get(workflowId)?.results.has(seq) === true) {
      this.#violate('bodies', `${which} began though its result is on record`);
    }
    this.#bodies.push({ workflowId, seq, token });
    return `body ${String(this.#bodies.length - 1)}.`;
  }

  takesEffect(workflowId: string, seq: number, id: string): void {
    this.#effects.set(`${workflowId} ${String(seq)}`, id);
  }

  effectOf(workflowId: string, seq: number): string | undefined {
    return this.#effects.get(`${workflowId} ${String(seq)}`);
  }

  undoes(workflowId: string, id: string): void {
    this.#undone.add(`${workflowId} ${id}`);
  }

  isUndone(workflowId: string, id: string): boolean {
    return this.#undone.has(`${workflowId} ${id}`);
  }

  /** It may begin again, with the next attempt. */
  failed(token: string, seq: number): void {
    const run = this.#runs.get(`${token} ${String(seq)}`);
    if (run !== undefined) run.isOver = true;
  }

  /** A workflow's code has got the value of a step. */
  handed(workflowId: string, token: string, value: string): void {
    if (!this.#auditor.isOwner(workflowId, token)) return;
    const body = bodyOf(this.#bodies, value);
    if (body?.workflowId !== workflowId) {
      this.#violate('results-stay', `${workflowId} got "${value}", which no body of it returned`);
      return;
    }
    const recorded = this.#db.workflows.get(workflowId)?.results.get(body.seq)?.output;
    if (recorded?.includes(value) !== true) {
      this.#violate('results-stay', `${workflowId} got "${value}", and on record is ${String(recorded)}`);
    }
  }

  /** Somebody who has waited since then is told an outcome. */
  tell(
    who: string,
    workflowId: string,
    since: number,
    found: Pick<Extract<FoundOutcome, { kind: 'outcome' }>, 'output' | 'error'>,
  ): void {
    const known = this.#auditor.outcomes.get(workflowId) ?? [];
    const isKnown = known.some(
      ({ output, error, until }) => output === found.output && error === found.error && until >= since,
    );
    if (isKnown) return;
    const what = String(found.output ?? found.error);
    this.#violate('same-outcome', `${who} was told of ${workflowId}: ${what}; on record: ${JSON.stringify(known)}`);
  }

  /** A body began in an execution that does not own its workflow. Nobody can know everything at once; but most of it. */
  #judgeLate(actor: SimulatedActor, { workflowId, token }: Body, which: string): void {
    this.#counts.lateBodies += 1;
    const loss = this.#auditor.losses.get(token);
    if (loss === undefined) {
      this.#violate('fencing', `${which} began, and it never owned the workflow`);
      return;
    }
    // The hint of a control operation is on its way; or the answer to its own write is.
    if (loss.how === 'control' || (loss.how === 'own' && loss.isUnheard)) return;
    // The answer that it owns has just come, and is older than the loss.
    if (this.#verifiedAt.get(token) === this.#world.now) return;
    if (actor.wasRobbed) return;
    this.#violate(
      'fencing',
      `${which} began ${(this.#world.now - loss.at).toFixed(1)} ms after ${workflowId} was lost: ${loss.how}`,
    );
  }
}

export function bodyOf<Entry>(bodies: readonly Entry[], text: string): Entry | undefined {
  const index = /body (\d+)\./.exec(text)?.[1];
  return index === undefined ? undefined : bodies[Number(index)];
}
