import type { Driver } from '../../drivers/driver.js';
import { PoolEndedError } from '../../errors/database-errors.js';
import { StoreClosedError } from '../../errors/store-errors.js';
import { countFlush, type StoreCounters } from '../store-counters.js';
import { backoffMs, pause } from './backoff.js';
import type { PendingWrite } from './pending-write.js';
import type { RefusalRow } from './refusal-row.js';
import { heldUpDelay, settleGroup, settleRefused, type Answered } from './settle.js';
import { isHeldUp, isTransient } from './transient-errors.js';
import { loneCheckpoint, sortGroups, WriteBatch, type WorkflowGroup } from './write-batch.js';
import { WriteStatements, type WriteStatement } from './write-statement.js';

/** How many flushes may be under way at once, each on a connection of its own. */
export const LANES = 2;

/**
 * Collects the writes of all executions of the process and sends them as few statements: one round trip and one flush of
 * the log serve many. Each item's check stays its own.
 *
 * - No timer: an idle lane sends at once; what arrives while all lanes are busy forms the next batch.
 * - An execution has at most one flush under way, so its writes reach the database in the order of the calls. Executions
 *   are told apart by token: an earlier one's write that hangs does not hold up the owner's in the same process.
 * - A statement that the server refuses is split until the item at fault is alone; only that one fails.
 * - A row that somebody else holds locked is skipped by the statement and tried again later. An ID that an open transaction
 *   is inserting cannot be skipped: the statement gives up after a moment, and is split as well.
 * - A lost reply is no answer: the same nonces are sent again until one comes.
 * - A transaction of a step takes the execution's turn for itself while it records its result: see {@link GroupCommit.takeTurn}.
 */
export class GroupCommit {
  readonly #driver: Driver;
  readonly #statements: WriteStatements;
  readonly #closing = new AbortController();
  /** Tokens of executions with a flush under way, or a write that waits for its next try. */
  readonly #busy = new Set<string>();
  readonly #underWay = new Set<readonly WorkflowGroup[]>();
  readonly #delayed = new Map<NodeJS.Timeout, WorkflowGroup>();
  /** Tokens of executions whose writes in the queue come before who waits for the next turn. */
  readonly #writesFirst = new Set<string>();
  /** Who waits for an execution's turn, by token. */
  readonly #turns = new Map<string, TurnRequest[]>();
  #queue: PendingWrite[] = [];
  #lanes = 0;
  #rowsUnderWay = 0;
  readonly #counters: StoreCounters;
  #scheduled = false;
  #turnsTaken = 0;

  constructor(driver: Driver, schema: string, counters: StoreCounters) {
    this.#driver = driver;
    this.#counters = counters;
    this.#statements = new WriteStatements(schema);
  }

  submit(write: PendingWrite): void {
    if (this.#closing.signal.aborted) {
      write.abandon(new StoreClosedError('The store is closed: this write was not sent.'));
      return;
    }
    this.#queue.push(write);
    this.#schedule();
  }

  /**
   * Waits until no write of this execution is under way, and keeps it so until the returned function is called: whoever records
   * something by another way than this one needs to know the version, and to move it on. Writes that are submitted meanwhile
   * wait; those of other executions do not.
   *
   * @returns The function at once where the turn is free. Undefined when it did not come within `waitMs`.
   * @throws StoreClosedError
   */
  takeTurn(token: string, waitMs: number): (() => void) | Promise<(() => void) | undefined> {
    if (this.#closing.signal.aborted) return Promise.reject(new StoreClosedError('The store is closed.'));
    if (!this.#busy.has(token) && !this.#writesFirst.has(token)) return this.#turnOf(token);
    return new Promise((resolve, reject) => {
      const timer = Number.isFinite(waitMs)
        ? setTimeout(() => {
            this.#forgetTurn(token, request);
            resolve(undefined);
          }, waitMs)
        : undefined;
      const request: TurnRequest = {
        grant: () => {
          clearTimeout(timer);
          resolve(this.#turnOf(token));
        },
        abandon: (cause) => {
          clearTimeout(timer);
          reject(cause);
        },
      };
      const waiting = this.#turns.get(token);
      if (waiting === undefined) this.#turns.set(token, [request]);
      else waiting.push(request);
    });
  }

  /** Whether nothing waits and nothing is under way. */
  get isIdle(): boolean {
    return this.#queue.length === 0 && this.#lanes === 0 && this.#delayed.size === 0 && this.#turnsTaken === 0;
  }

  /** Gives up whatever has no answer yet. */
  close(): void {
    this.#closing.abort();
    const closed = new StoreClosedError('The store was closed before this write was answered: its effect is unknown.');
    for (const request of [...this.#turns.values()].flat()) request.abandon(closed);
    this.#turns.clear();
    for (const [timer, group] of this.#delayed) {
      clearTimeout(timer);
      for (const write of group.writes) write.abandon(closed);
    }
    this.#delayed.clear();
    for (const write of this.#queue) write.abandon(closed);
    this.#queue = [];
    // Not waited for: on a connection that carries nothing any more the reply may take as long as the driver's limit.
    for (const group of [...this.#underWay].flat()) {
      for (const write of group.writes) write.abandon(closed);
    }
  }

  /** Sends after the current round of the event loop, so that writes that become ready together travel together. */
  #schedule(): void {
    if (this.#scheduled || this.#lanes >= LANES) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      while (this.#lanes < LANES) {
        const batch = this.#takeBatch();
        if (batch.isEmpty) break;
        void this.#runLane(batch.groups);
      }
    });
  }

  #takeBatch(): WriteBatch {
    const batch = WriteBatch.shareOf(this.#queue.length + this.#rowsUnderWay, LANES);
    const left: PendingWrite[] = [];
    const overtaken = new Set<string>();
    for (const write of this.#queue) {
      if (this.#busy.has(write.token) || overtaken.has(write.token) || !batch.add(write)) {
        overtaken.add(write.token);
        left.push(write);
      }
    }
    this.#queue = left;
    for (const { token } of batch.groups) {
      this.#busy.add(token);
      this.#writesFirst.delete(token);
    }
    return batch;
  }

  async #runLane(groups: readonly WorkflowGroup[]): Promise<void> {
    const rows = groups.reduce((sum, { writes }) => sum + writes.length, 0);
    this.#lanes += 1;
    this.#rowsUnderWay += rows;
    this.#underWay.add(groups);
    countFlush(this.#counters, rows);
    try {
      await this.#send(groups);
    } finally {
      this.#underWay.delete(groups);
      this.#rowsUnderWay -= rows;
      this.#lanes -= 1;
      if (this.#queue.length > 0) this.#schedule();
    }
  }

  /** Sends until there is an answer; splits when the server refuses the statement as such. */
  async #send(groups: readonly WorkflowGroup[]): Promise<void> {
    for (let attempt = 1; !this.#closing.signal.aborted; attempt++) {
      let rows: readonly RefusalRow[];
      const statement = this.#statementFor(groups);
      try {
        rows = await this.#driver.query<RefusalRow>(statement.text, statement.parameters, { prepare: statement.name });
      } catch (error) {
        if (error instanceof PoolEndedError) {
          // Nobody's write is at fault, and none will ever be answered.
          for (const group of groups) this.#abandon(group, error);
          return;
        }
        if (isTransient(error) && !isHeldUp(error)) {
          this.#counters.repeatedFlushes += 1;
          await pause(backoffMs(attempt), this.#closing.signal);
          continue;
        }
        await this.#isolate(groups, error);
        return;
      }
      this.#settle(groups, rows);
      return;
    }
    for (const group of groups) this.#abandon(group);
  }

  #statementFor(groups: readonly WorkflowGroup[]): WriteStatement {
    const lone = loneCheckpoint(groups);
    if (lone !== undefined) return this.#statements.lone(lone);
    const { starts, checkpoints, completions, streams, apart } = sortGroups(groups);
    if (streams.length > 0) return this.#statements.streams(streams);
    const [first, ...others] = apart;
    return first !== undefined
      ? this.#statements.apart([first, ...others])
      : this.#statements.combined(starts, checkpoints, completions);
  }

  async #isolate(groups: readonly WorkflowGroup[], error: unknown): Promise<void> {
    const [group] = groups;
    if (group === undefined) return;
    if (groups.length > 1) {
      const middle = groups.length >> 1;
      await this.#send(groups.slice(0, middle));
      await this.#send(groups.slice(middle));
      return;
    }
    if (group.writes.length > 1) {
      // Each by itself, in order, and each behind the answer of the one before it; a failed one holds up nobody.
      for (const write of group.writes) write.alone = true;
      this.#retryLater(group, 0);
      return;
    }
    for (const write of group.writes) {
      if (isHeldUp(error)) {
        write.alone = true;
        this.#retryLater(group, heldUpDelay(write));
        return;
      }
      this.#counters.refusedWrites += 1;
      settleRefused(write, error);
    }
    this.#free(group.token);
  }

  #settle(groups: readonly WorkflowGroup[], rows: readonly RefusalRow[]): void {
    const answers = this.#answersByWrite(groups, rows);
    for (const group of groups) {
      const answered: Answered = settleGroup(group, answers);
      if (answered.kind === 'done') {
        this.#free(group.token);
      } else {
        this.#retryLater(answered.group, answered.delayMs);
      }
    }
  }

  /** Brings the rows, which speak of positions within a part, back to the writes. */
  #answersByWrite(groups: readonly WorkflowGroup[], rows: readonly RefusalRow[]): Map<PendingWrite, RefusalRow> {
    const answers = new Map<PendingWrite, RefusalRow>();
    if (rows.length === 0) return answers;
    const { starts, checkpoints, completions, streams, apart: rarer } = sortGroups(groups);
    const entries = streams.flatMap(({ writes }) => writes);
    const apart: readonly PendingWrite[] = entries.length > 0 ? entries : rarer;
    const flat = { start: starts, checkpoint: checkpoints.flatMap(({ writes }) => writes), complete: completions };
    for (const row of rows) {
      if (row.item === null) continue;
      const part: readonly PendingWrite[] =
        row.part !== undefined ? flat[row.part] : apart.length > 0 ? apart : flat.checkpoint;
      const write = part[row.item - 1];
      if (write === undefined) continue;
      answers.set(write, row);
      if (row.answer === 'conflict') this.#counters.versionConflicts += 1;
      else if (row.answer === 'locked') this.#counters.lockedRows += 1;
    }
    return answers;
  }

  /** The execution stays busy meanwhile, so that nothing of it overtakes. */
  #retryLater(group: WorkflowGroup, delayMs: number): void {
    if (this.#closing.signal.aborted) {
      this.#abandon(group);
      return;
    }
    const timer = setTimeout(() => {
      this.#delayed.delete(timer);
      this.#queue.unshift(...group.writes);
      this.#free(group.token);
      this.#schedule();
    }, delayMs);
    this.#delayed.set(timer, group);
  }

  #abandon(
    group: WorkflowGroup,
    cause: Error = new StoreClosedError('The store was closed before this write was answered: its effect is unknown.'),
  ): void {
    for (const write of group.writes) write.abandon(cause);
    this.#free(group.token);
  }

  /** Nothing of this execution is under way any more. Whoever waits for its turn comes before what waits in the queue. */
  #free(token: string): void {
    this.#busy.delete(token);
    const waiting = this.#turns.get(token);
    const next = waiting?.shift();
    if (waiting?.length === 0) this.#turns.delete(token);
    next?.grant();
  }

  #turnOf(token: string): () => void {
    this.#busy.add(token);
    this.#turnsTaken += 1;
    let isTaken = true;
    return () => {
      if (!isTaken) return;
      isTaken = false;
      this.#turnsTaken -= 1;
      // Turns and writes alternate: transactions that follow one another would otherwise keep parallel steps from their record.
      if (this.#turns.has(token) && this.#queue.some((write) => write.token === token)) {
        this.#busy.delete(token);
        this.#writesFirst.add(token);
      } else this.#free(token);
      if (this.#queue.length > 0) this.#schedule();
    };
  }

  #forgetTurn(token: string, request: TurnRequest): void {
    const waiting = this.#turns.get(token)?.filter((other) => other !== request) ?? [];
    if (waiting.length === 0) this.#turns.delete(token);
    else this.#turns.set(token, waiting);
  }
}

/** Somebody who waits for an execution's turn. */
interface TurnRequest {
  readonly grant: () => void;
  readonly abandon: (cause: Error) => void;
}
