import type { Holdfast } from '../../src/index.js';
import type { Order, Receipt } from './checkout.js';
import type { Cleanup } from './cleanup.js';
import type { Hold } from './hold.js';
import type { Narrator } from './narrator.js';
import { type BodyRun, readBodyRuns } from './outside-world.js';
import { type RecordedStep, recordedSteps } from './records.js';
import type { CastOrder, Role } from './roles.js';
import { printable } from './text.js';
import { WorkerProcess, type WorkerSettings } from './worker-process.js';

/** What the parts of the story share. */
export class Story {
  /** Runs no workflows itself: it looks at those of the workers, waits for them, and cancels and resumes one. */
  readonly holdfast: Holdfast;
  readonly narrator: Narrator;
  readonly #cast: readonly CastOrder[];
  readonly #settings: WorkerSettings;
  readonly #cleanup: Cleanup;
  readonly #interruptions = new Map<string, readonly RecordedStep[]>();
  readonly #violations: string[] = [];

  constructor(parts: {
    readonly holdfast: Holdfast;
    readonly narrator: Narrator;
    readonly cast: readonly CastOrder[];
    readonly settings: WorkerSettings;
    readonly cleanup: Cleanup;
  }) {
    this.holdfast = parts.holdfast;
    this.narrator = parts.narrator;
    this.#cast = parts.cast;
    this.#settings = parts.settings;
    this.#cleanup = parts.cleanup;
  }

  get cast(): readonly CastOrder[] {
    return this.#cast;
  }

  /** The order that has this role, if there are enough orders. */
  orderOf(role: Exclude<Role, 'undisturbed'>): Order | undefined {
    return this.#cast.find((entry) => entry.role === role)?.order;
  }

  launchWorker(name: string, hold?: Hold): Promise<WorkerProcess> {
    return WorkerProcess.launch(name, this.#settings, this.#cleanup, hold);
  }

  /** What the outside world saw. */
  bodyRuns(): readonly BodyRun[] {
    return readBodyRuns(this.#settings.worldLogPath);
  }

  /** Waits for the recorded outcome, wherever the workflow runs. */
  receiptOf(orderId: string): Promise<Receipt> {
    return this.holdfast.handle<Receipt>(orderId).result();
  }

  /** Remembers what is on record of an order at the moment of its interruption: none of that may change or run again. */
  async interrupted(orderId: string): Promise<readonly RecordedStep[]> {
    const recorded = await recordedSteps(this.holdfast, orderId);
    this.#interruptions.set(orderId, recorded);
    return recorded;
  }

  recordedAtInterruption(orderId: string): readonly RecordedStep[] | undefined {
    return this.#interruptions.get(orderId);
  }

  /** Something is not as promised: the story goes on, and ends badly. */
  expect(holds: boolean, violation: string): void {
    if (!holds) this.#violations.push(violation);
  }

  get violations(): readonly string[] {
    return this.#violations;
  }
}

/** An order's ID in a sentence. */
export function named(order: Order): string {
  return printable(order.id);
}
