import type { Judge } from './violations.js';

/** A mistake in the library. */
export interface Mutant {
  readonly name: string;
  /** At least one of these has to find it. */
  readonly foundBy: readonly Judge[];
  /** From which ordinary schedule on it is found soon; 1 where it is found everywhere. */
  readonly seed?: number;
  /** Small schedules find it too, but one in thousands: several things have to come together. */
  readonly isRareInSmall?: boolean;
}

export const MUTANTS: readonly Mutant[] = [
  { name: 'no-token', foundBy: ['owner-writes'] },
  { name: 'no-version', foundBy: ['ends'] },
  { name: 'check-apart', foundBy: ['ends', 'owner-writes'] },
  { name: 'unknown-is-failure', foundBy: ['ends'] },
  { name: 'unknown-is-success', foundBy: ['results-stay', 'ends', 'same-outcome'] },
  { name: 'parked-tells-its-own', foundBy: ['same-outcome'] },
  { name: 'loss-not-sticky', foundBy: ['fencing'] },
  { name: 'checkpoint-not-atomic', foundBy: ['messages'] },
  { name: 'heartbeat-revives', foundBy: ['fencing'], seed: 100_055, isRareInSmall: true },
  { name: 'worker-clock', foundBy: ['takeovers'] },
  { name: 'token-reused', foundBy: ['owner-writes'] },
  { name: 'time-as-nonce', foundBy: ['messages', 'same-outcome', 'kept', 'ends'] },
  { name: 'adopts-unseen', foundBy: ['fencing'], isRareInSmall: true },
  { name: 'wake-up-lost', foundBy: ['ends'] },
  { name: 'outcome-again', foundBy: ['one-outcome'] },
  { name: 'version-stays', foundBy: ['versions'] },
  { name: 'runs-twice', foundBy: ['bodies'] },
  { name: 'sleep-ends-early', foundBy: ['timers'] },
  { name: 'undoes-nothing', foundBy: ['rollbacks'] },
  { name: 'no-limit', foundBy: ['limits'] },
  { name: 'start-not-written', foundBy: ['kept'] },
  { name: 'untyped-error', foundBy: ['errors'] },
];

/** A place of the library where mutants make their mistakes: in a copy of its sources that only the simulation runs. */
export interface Patch {
  /** Below src/. */
  readonly file: string;
  /** Is there once. */
  readonly find: string;
  /** `IS(name)` stands for whether this mutant is the one that runs. */
  readonly replace: string;
}

export const PATCHES: readonly Patch[] = [
  {
    file: 'store/memory/ownership-check.ts',
    find: 'return workflow?.ownerToken === token && workflow.recordVersion === version ? workflow : undefined;',
    replace: `if (workflow === undefined) return undefined;
      const isOwned = (IS(no-token) || workflow.ownerToken === token) && (IS(no-version) || workflow.recordVersion === version);
      // The first try of a write only checks; the second one writes.
      if (!IS(check-apart)) return isOwned ? workflow : undefined;
      const checked = (globalThis.checkedNonces ??= new Set());
      if (checked.has(nonce)) return workflow;
      if (isOwned) checked.add(nonce);
      return undefined;`,
  },
  {
    file: 'store/memory/ownership-check.ts',
    find: '{ workflowId, token, version }: OwnershipCheck',
    replace: '{ workflowId, token, version, nonce }: OwnershipCheck',
  },
  {
    file: 'store/memory/ownership-check.ts',
    find: 'if (workflow.ownerToken !== check.token)',
    replace: 'if (!IS(no-token) && workflow.ownerToken !== check.token)',
  },
  {
    file: 'store/memory/memory-calls.ts',
    find: 'const tried = await this.ask(() => attempt({ workflowId, token, version, nonce }));',
    replace: `const once = () => attempt({ workflowId, token, version, nonce: IS(unknown-is-failure) ? this.#newNonce() : nonce });
      const tried = IS(unknown-is-success)
        ? await this.once(once).catch(() => ({ kind: 'answered', answer: { kind: 'written' }, raised: 1 }))
        : await this.ask(once);`,
  },
  {
    file: 'store/memory/memory-calls.ts',
    find: 'newNonce(): string {',
    replace: `newNonce(): string {
      if (IS(time-as-nonce)) return String(Math.floor(globalThis.workerClock()));`,
  },
  {
    file: 'engine/execution.ts',
    find: 'if (!this.isRunning || this.#isTimedOut || (deadlineInMs ?? 1) <= 0) return;',
    replace: `if (IS(parked-tells-its-own) && !this.isRunning && outcome.error !== null) {
        this.host.ended(this, { kind: 'completed', outcome, sentAt: Infinity });
      }
      if (!this.isRunning || this.#isTimedOut || (deadlineInMs ?? 1) <= 0) return;`,
  },
  {
    file: 'engine/execution.ts',
    find: "reject) => {\n      if (this.#state !== 'running') {",
    replace: "reject) => {\n      if (!IS(loss-not-sticky) && this.#state !== 'running') {",
  },
  {
    file: 'engine/execution.ts',
    find: "if (this.#state !== 'running') throw this.#departure.reason;",
    replace: "if (!IS(loss-not-sticky) && this.#state !== 'running') throw this.#departure.reason;",
  },
  {
    // The message is taken, and its record is another transaction, before which something comes in between.
    file: 'store/memory/messages.ts',
    find: 'if (message !== undefined) message.consumedSeq = seq;',
    replace: `if (message !== undefined) message.consumedSeq = seq;
      if (IS(checkpoint-not-atomic) && message !== undefined && workflow.recordVersion % 2 === 0) {
        return { kind: 'moved', version: workflow.recordVersion };
      }`,
  },
  {
    file: 'fleet/executor.ts',
    find: 'if (this.#leaseAgeMs >= leaseMs) this.#doubt',
    replace: 'if (!IS(heartbeat-revives) && this.#leaseAgeMs >= leaseMs) this.#doubt',
  },
  {
    file: 'store/memory/claim/claim.ts',
    find: 'leaseUntil <= db.now()',
    replace: 'leaseUntil <= (IS(worker-clock) ? globalThis.workerClock() : db.now())',
  },
  {
    file: 'store/memory/claim/take.ts',
    find: 'const token = db.newToken();',
    replace: "const token = IS(token-reused) ? 'the token of ' + workflow.workflowId : db.newToken();",
  },
  {
    file: 'engine/engine.ts',
    find: 'if (this.runtime.now() - sentAt < this.#executor.lateMs) return true;',
    replace: 'if (IS(adopts-unseen) || this.runtime.now() - sentAt < this.#executor.lateMs) return true;',
  },
  {
    file: 'store/memory/wake-ups.ts',
    find: 'db.wakeUps.add(waiterId);',
    replace: 'if (!IS(wake-up-lost)) db.wakeUps.add(waiterId);',
  },
  {
    file: 'store/memory/complete.ts',
    find: 'const workflow = owned(db, check);\n  if (workflow === undefined) {\n    const isMine',
    replace: `const workflow = IS(outcome-again) ? db.workflows.get(check.workflowId) : owned(db, check);
      if (workflow === undefined) {
        const isMine`,
  },
  {
    file: 'store/memory/complete.ts',
    find: 'if (workflow.outcome !== null) throw',
    replace: 'if (!IS(outcome-again) && workflow.outcome !== null) throw',
  },
  {
    file: 'store/memory/record-result.ts',
    find: 'workflow.recordVersion += 1;',
    replace: 'if (!IS(version-stays)) workflow.recordVersion += 1;',
  },
  {
    file: 'engine/step-attempts.ts',
    find: 'const value = await host.runBody(context, { limit, failures });',
    replace: `if (IS(runs-twice)) await host.runBody(context, { limit, failures });
      const value = await host.runBody(context, { limit, failures });`,
  },
  {
    file: 'engine/durable-calls.ts',
    find: 'elapse(execution, remainingMs)',
    replace: 'elapse(execution, IS(sleep-ends-early) ? remainingMs / 2 : remainingMs)',
  },
  {
    file: 'engine/rollback.ts',
    find: 'const found = [...execution.compensations.inReverse];',
    replace: 'const found = IS(undoes-nothing) ? [] : [...execution.compensations.inReverse];',
  },
  {
    file: 'store/memory/claim/pick-from-queue.ts',
    find: 'const left = Math.min(share, room.slots,',
    replace: 'const left = IS(no-limit) ? share : Math.min(share, room.slots,',
  },
  {
    file: 'store/memory/start.ts',
    find: 'db.workflows.set(request.workflowId,',
    replace: "if (!IS(start-not-written) || request.workflowId !== 'w1') db.workflows.set(request.workflowId,",
  },
  {
    file: 'engine/outcome-waiter.ts',
    find: 'const error = new HoldfastClosedError(',
    replace: 'const error = new (IS(untyped-error) ? TypeError : HoldfastClosedError)(',
  },
];
