import { encodeFixedErrors, type FixedErrors } from '../../src/fixed-errors.js';
import { HoldfastError } from '../../src/errors/holdfast-error.js';
import { makeSerializer } from '../../src/make-serializer.js';
import { workflowDefinition } from '../../src/engine/definitions.js';
import { prepareEnqueue } from '../../src/engine/prepare-enqueue.js';
import { prepareStart } from '../../src/engine/prepare-start.js';
import { MemoryDatabase } from '../../src/store/memory/memory-database.js';
import { defineQueues } from '../../src/store/memory/queues.js';
import { isTerminal } from '../../src/store/memory/tables.js';
import type { ValueSerializer } from '../../src/values/index.js';
import { SeededRandom } from '../campaigns/support/seeded-random.js';
import { Auditor } from './auditor.js';
import { FaultyLink, type Weather } from './faulty-link.js';
import { bodyOf, Ledger } from './ledger.js';
import { judgeRollbacks } from './rollback-judge.js';
import { judgeMessages, type Acknowledged } from './message-judge.js';
import { workOf, type Act, type Fault, type PlannedWorkflow, type Scenario } from './scenario.js';
import {
  LEASE_MS,
  POLL_MS,
  SimulatedActor,
  SimulatedClient,
  SimulatedProcess,
  type ProcessParts,
  type SimulatedObserver,
} from './simulated-process.js';
import { SimulatedError, workflowIdOf } from './simulated-workflow.js';
import { newCounts, type Counts, type Judge, type Violation } from './violations.js';
import { VirtualRuntime } from './virtual-runtime.js';
import { World } from './world.js';

/** Virtual time begins here, milliseconds since 1970. */
const START_MS = 1_000_000_000_000;
/** How long all may take to end once everybody is well, without the work itself, in milliseconds. */
const HEALING_MS = 2 * LEASE_MS + 4 * POLL_MS + 1_500;
/** How long a process takes at most from the end of a body to what its workflow does next, in milliseconds. */
const QUIET_MS = 1;
const MOST_HAPPENINGS = 200_000;

export interface RunResult {
  readonly violations: readonly Violation[];
  readonly counts: Counts;
  /** Equal for runs that have taken the same path. */
  readonly digest: number;
}

/** What does not depend on the run. */
export interface Fixed {
  readonly serializer: ValueSerializer;
  readonly errors: FixedErrors;
}

export async function fixedParts(): Promise<Fixed> {
  const serializer = makeSerializer({});
  return { serializer, errors: await encodeFixedErrors(serializer) };
}

export async function runScenario(
  scenario: Scenario,
  fixed: Fixed,
  trace?: (line: string) => void,
): Promise<RunResult> {
  const run = new ScenarioRun(scenario, fixed, trace);
  await run.go();
  return { violations: run.violations, counts: run.counts, digest: run.digest };
}

class ScenarioRun {
  readonly violations: Violation[] = [];
  readonly counts = newCounts();
  readonly #scenario: Scenario;
  readonly #fixed: Fixed;
  readonly #trace: ((line: string) => void) | undefined;
  readonly #world = new World(START_MS);
  readonly #db: MemoryDatabase;
  readonly #auditor: Auditor;
  readonly #ledger: Ledger;
  readonly #weather: Weather = { slowUntil: 0 };
  readonly #seeds: SeededRandom;
  readonly #processes: SimulatedProcess[] = [];
  readonly #client: SimulatedClient;
  readonly #acknowledged: Acknowledged = { workflows: [], messages: [] };
  /** What is under way from outside: acts, and observers. */
  #underWay = 0;
  #observing = 0;
  #isHealed = false;
  /** Since when nobody does anything that matters; infinite: somebody does. */
  #quietSince = Infinity;
  /** What ends with a process. */
  readonly #deaths: { readonly actor: SimulatedActor; readonly over: () => void }[] = [];

  constructor(scenario: Scenario, fixed: Fixed, trace: ((line: string) => void) | undefined) {
    this.#scenario = scenario;
    this.#fixed = fixed;
    this.#trace = trace;
    this.#seeds = new SeededRandom(scenario.seed);
    let tokens = 0;
    const world = this.#world;
    const clock = { now: () => world.now, pause: () => Promise.reject(new Error('Each process pauses by itself.')) };
    this.#db = new MemoryDatabase({ clock, newToken: () => `db#${String((tokens += 1))}` });
    const bodies: ConstructorParameters<typeof Ledger>[0]['bodies'] = [];
    const violate = (judge: Judge, text: string): void => {
      this.#violate(judge, text);
    };
    const judged = { db: this.#db, world, counts: this.counts, violate };
    this.#auditor = new Auditor({ ...judged, tokenOfBody: (output) => bodyOf(bodies, output)?.token });
    this.#ledger = new Ledger({ ...judged, auditor: this.#auditor, bodies });
    defineQueues(
      this.#db,
      [
        { ...UNLIMITED, name: 'one', concurrency: 1 },
        { ...UNLIMITED, name: 'one-each', executorConcurrency: 1 },
      ],
      false,
    );
    this.#client = new SimulatedClient(this.#partsOf('client'));
  }

  get digest(): number {
    return this.#world.digest;
  }

  async go(): Promise<void> {
    const { executors, workflows, acts, faults, healer } = this.#scenario;
    const world = this.#world;
    this.#client.subscribe();
    for (let index = 0; index < executors; index++) this.#join(`e${String(index)}`);
    workflows.forEach((planned, index) => {
      this.#plan(planned.at, () => this.#start(planned, index));
    });
    for (const act of acts) this.#plan(act.at, () => this.#act(act));
    for (const fault of faults) {
      world.in(fault.at, undefined, () => {
        this.#strike(fault);
      });
    }
    const troubleMs = Math.max(
      0,
      ...workflows.map(({ at }) => at),
      ...acts.map(({ at }) => at),
      ...faults.map((fault) => fault.at + lengthOf(fault)),
    );
    world.in(troubleMs + 1, undefined, () => {
      if (this.#isHealed) return;
      if (healer === 'always' || this.#living().every(({ actor }) => actor.wasRobbed)) this.#join('healer');
      this.#heal();
    });
    const workMs = 2 * workflows.reduce((sum, { program }) => sum + workOf(program), 0);
    const untilMs = world.now + troubleMs + HEALING_MS + workMs;
    const isOver = await world.run(() => this.#isOver(), { untilMs, happenings: MOST_HAPPENINGS });
    this.#finish(isOver);
    for (const { actor } of [...this.#processes, this.#client]) actor.isDead = true;
  }

  // What happens --------------------------------------------------------------------------------------------------

  #join(executorId: string): void {
    // The newest of an ID wins: the others lose what they have, and are told at their next heartbeats.
    for (const other of this.#processes) if (other.executorId === executorId) other.actor.wasRobbed = true;
    const name = `${executorId}.${String(this.#processes.filter((other) => other.executorId === executorId).length)}`;
    const process = new SimulatedProcess(this.#partsOf(name), executorId);
    this.#processes.push(process);
    this.#errorsOf(process.launch());
  }

  async #start(planned: PlannedWorkflow, index: number): Promise<void> {
    const workflowId = workflowIdOf(index);
    const starter = planned.by === null || planned.queue !== null ? undefined : this.#alive(planned.by);
    if (starter?.isLaunched !== true) await this.#enqueue(planned, workflowId);
    else {
      const [definition] = starter.engine.catalog.definitions;
      if (definition === undefined) throw new TypeError('Each process knows the workflow.');
      this.#underWay += 1;
      const over = this.#once(starter.actor, () => {
        this.#underWay -= 1;
      });
      this.#world.in(0, starter.actor, () => {
        // Who is killed while it starts something acknowledges nothing.
        const started = starter.engine.start(definition, startOptions(planned, workflowId), [planned.program, true]);
        this.#errorsOf(
          started
            .then(() => {
              this.#acknowledged.workflows.push(workflowId);
              this.#observe(starter, workflowId);
            })
            .finally(over),
        );
      });
    }
  }

  async #enqueue(planned: PlannedWorkflow, workflowId: string): Promise<void> {
    const { serializer } = this.#fixed;
    const { program, queue } = planned;
    const args = [program, queue === null];
    const start = await prepareStart(
      CLIENT_DEFINITION,
      args,
      startOptions(planned, workflowId),
      workflowId,
      serializer,
    );
    const request = await prepareEnqueue(start, queue ?? undefined, {}, serializer);
    const [answer] = await this.#client.queues.enqueue([request]);
    if (answer?.kind !== 'enqueued' && answer?.kind !== 'exists') {
      this.#violate('errors', `${workflowId} was not enqueued: ${String(answer?.kind)}`);
      return;
    }
    this.#acknowledged.workflows.push(workflowId);
    this.#observe(this.#client, workflowId);
  }

  async #act(act: Act): Promise<void> {
    const workflowId = workflowIdOf(act.workflow);
    const by = { actor: 'somebody', reason: null };
    const { cancelled } = this.#fixed.errors;
    const { admin, messenger } = this.#client;
    switch (act.act) {
      case 'cancel':
        await admin.cancel([workflowId], by, { error: cancelled, children: 'cancel', compensate: false });
        break;
      case 'undo':
        await admin.cancel([workflowId], by, { error: cancelled, children: 'cancel', compensate: true });
        break;
      case 'resume':
        await admin.resume([workflowId], by);
        break;
      case 'prioritize':
        for (let priority = 1; priority <= 3; priority++) await admin.prioritize(workflowId, by, priority);
        break;
      case 'rewind': {
        const { kind } = await admin.rewind(workflowId, by, { toStep: act.toStep, childError: cancelled });
        if (kind === 'done') this.counts.rewinds += 1;
        break;
      }
      case 'send':
        for (let number = 0; number < act.count; number++) {
          const message = { from: `outside ${String(act.at)}`, number };
          await messenger.send(workflowId, act.topic, message, {});
          this.#acknowledged.messages.push({ workflowId, payload: JSON.stringify(message) });
        }
        break;
    }
  }

  #strike(fault: Fault): void {
    const process = this.#alive(fault.process);
    this.#trace?.(`${this.#sinceStart()} fault ${JSON.stringify(fault)} hits ${process?.actor.name ?? 'nobody'}`);
    if (fault.fault === 'join') this.#join(`j${String(this.#processes.length)}`);
    if (fault.fault === 'slow-store') this.#weather.slowUntil = this.#world.now + fault.ms;
    if (fault.fault === 'wake') this.#wakeAll();
    if (process === undefined) return;
    const { actor, runtime, link, executor, executorId } = process;
    switch (fault.fault) {
      case 'crash':
        this.counts.crashes += 1;
        this.#countEnds(process);
        actor.isDead = true;
        for (const death of this.#deaths) if (death.actor === actor) death.over();
        if (fault.restartMs !== null) {
          this.#world.in(fault.restartMs, undefined, () => {
            this.#join(fault.sameId ? executorId : `r${String(this.#processes.length)}`);
          });
        }
        break;
      case 'pause':
        this.counts.pauses += 1;
        actor.pausedUntil = Math.max(actor.pausedUntil, this.#world.now + fault.ms);
        if (fault.asleep) runtime.sleepUntil(actor.pausedUntil);
        break;
      case 'calls':
        link.strike(fault.fate, fault.count);
        break;
      case 'expire':
        actor.wasRobbed = true;
        for (const row of this.#db.executors) {
          if (row.executorId === executorId && row.incarnation === executor.identity.incarnation) {
            row.leaseUntil = Math.min(row.leaseUntil, this.#world.now);
          }
        }
        break;
      case 'twin':
        this.#join(executorId);
        break;
      case 'leave':
        this.#errorsOf(process.close());
        break;
      case 'set-clock':
        runtime.setWallClock(fault.byMs);
        // Of a machine that is suspended, only the wall clock tells. If that is set back meanwhile, nothing does.
        if (fault.byMs < 0) actor.wasRobbed = true;
        break;
      case 'slow-store':
      case 'join':
      case 'wake':
        break;
    }
  }

  /** Wake-ups that nobody has asked for. */
  #wakeAll(): void {
    this.#db.notify({ topic: 'work' });
    const workflowIds = [...this.#db.workflows.keys()];
    for (const workflowId of workflowIds) this.#db.notify({ topic: 'control', workflowId });
    this.#db.notify({ topic: 'outcome', workflowIds });
    this.#db.notify({ topic: 'message', workflowIds });
  }

  /** No faults any more. */
  #heal(): void {
    this.#isHealed = true;
    this.#weather.slowUntil = 0;
    for (const { link } of this.#processes) link.heal();
    this.#client.link.heal();
    for (const workflowId of this.#acknowledged.workflows) {
      for (const process of this.#living()) this.#observe(process, workflowId);
    }
  }

  #isOver(): boolean {
    if (this.#underWay > 0 || this.#observing > 0 || !this.#areAllEnded()) return false;
    if (this.#isHealed) return true;
    // Faults that are still to come would find nothing that they could do harm to.
    if (!this.#isQuiet()) this.#quietSince = Infinity;
    else if (this.#quietSince === Infinity) this.#quietSince = this.#world.now;
    else if (this.#world.now - this.#quietSince >= QUIET_MS) this.#heal();
    return false;
  }

  #areAllEnded(): boolean {
    for (const { status } of this.#db.workflows.values()) if (!isTerminal(status)) return false;
    return true;
  }

  /** Nobody runs anything, also nobody who has lost it, and nothing is on its way that could still write. */
  #isQuiet(): boolean {
    if (this.#client.link.isBusy) return false;
    return this.#processes.every(({ actor, link, engine }) => {
      if (link.isBusy) return false;
      return actor.isDead || (engine.runningCount === 0 && actor.openBodies === 0);
    });
  }

  #finish(isOver: boolean): void {
    const { counts } = this;
    for (const process of this.#processes) if (!process.actor.isDead) this.#countEnds(process);
    counts.versionConflicts += this.#processes.reduce((sum, { store }) => sum + store.counters.versionConflicts, 0);
    counts.workflows = this.#db.workflows.size;
    counts.happenings = this.#world.happened;
    if (!isOver) {
      const open = [...this.#db.workflows.values()].filter(({ status }) => !isTerminal(status));
      const which = open.map(({ workflowId, status, attention }) => `${workflowId} ${status} ${attention ?? ''}`);
      this.#violate(
        'ends',
        `not over: ${which.join(', ')}; ${String(this.#underWay)} calls and ${String(this.#observing)} observers wait`,
      );
    }
    for (const workflowId of this.#acknowledged.workflows) {
      if (!this.#db.workflows.has(workflowId)) this.#violate('kept', `${workflowId} was acknowledged, and is gone`);
    }
    judgeRollbacks(this.#db, this.#ledger, counts, (text) => {
      this.#violate('rollbacks', text);
    });
    judgeMessages(this.#db, this.#acknowledged, counts, (text) => {
      this.#violate('messages', text);
    });
  }

  #countEnds({ engine }: SimulatedProcess): void {
    this.counts.parked += engine.counters.ends.parked;
  }

  // Parts ---------------------------------------------------------------------------------------------------------

  #partsOf(name: string): ProcessParts {
    const { serializer, errors } = this.#fixed;
    const actor = new SimulatedActor(name);
    const world = this.#world;
    const [timeSeed, linkSeed] = [this.#seed(), this.#seed()];
    const runtime = new VirtualRuntime(world, actor, timeSeed);
    return {
      world,
      db: this.#db,
      ledger: this.#ledger,
      counts: this.counts,
      serializer,
      errors,
      actor,
      runtime,
      link: new FaultyLink({
        world,
        actor,
        auditor: this.#auditor,
        weather: this.#weather,
        workerClock: () => runtime.wallNow(),
        seed: linkSeed,
      }),
    };
  }

  #seed(): number {
    return Math.floor(this.#seeds.next() * 2 ** 32);
  }

  #living(): SimulatedProcess[] {
    return this.#processes.filter(({ actor, isClosing }) => !actor.isDead && !isClosing);
  }

  #alive(index: number): SimulatedProcess | undefined {
    const living = this.#living();
    return living[index % living.length];
  }

  // What is under way ---------------------------------------------------------------------------------------------

  #plan(at: number, work: () => Promise<void>): void {
    this.#underWay += 1;
    this.#world.in(at, this.#client.actor, () => {
      this.#errorsOf(
        work().finally(() => {
          this.#underWay -= 1;
        }),
      );
    });
  }

  #observe(observer: SimulatedObserver, workflowId: string): void {
    this.#observing += 1;
    const over = this.#once(observer.actor, () => {
      this.#observing -= 1;
    });
    this.#errorsOf(observer.observe(workflowId).finally(over));
  }

  /** What a process waits for is over once: when it is told, or when it dies, since who is dead waits for nothing. */
  #once(actor: SimulatedActor, over: () => void): () => void {
    let isOpen = true;
    const once = (): void => {
      if (isOpen) over();
      isOpen = false;
    };
    this.#deaths.push({ actor, over: once });
    return once;
  }

  /** Errors that callers get are those that are documented. */
  #errorsOf(work: Promise<unknown>): void {
    work.catch((error: unknown) => {
      if (error instanceof HoldfastError || error instanceof SimulatedError) return;
      this.#violate('errors', error instanceof Error ? (error.stack ?? error.message) : String(error));
    });
  }

  #violate(judge: Judge, text: string): void {
    this.violations.push({ judge, text, at: this.#world.now - START_MS });
    this.#trace?.(`${this.#sinceStart()} VIOLATION ${judge}: ${text}`);
  }

  #sinceStart(): string {
    return (this.#world.now - START_MS).toFixed(2).padStart(9);
  }
}

/** The client knows the name only. */
const CLIENT_DEFINITION = workflowDefinition('simulated', () => undefined, {});

const UNLIMITED = {
  concurrency: null,
  executorConcurrency: null,
  keyConcurrency: null,
  rateLimit: null,
  keyRateLimit: null,
};

function startOptions({ timeoutMs }: PlannedWorkflow, workflowId: string): { workflowId: string; timeout?: number } {
  return timeoutMs === null ? { workflowId } : { workflowId, timeout: timeoutMs };
}

function lengthOf(fault: Fault): number {
  switch (fault.fault) {
    case 'pause':
    case 'slow-store':
      return fault.ms;
    case 'crash':
      return fault.restartMs ?? 0;
    default:
      return 0;
  }
}
