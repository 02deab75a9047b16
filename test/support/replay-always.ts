import type { Driver } from '../../src/drivers/driver.js';
import type { Engine } from '../../src/engine/engine.js';
import type { ExecutionHost } from '../../src/engine/execution-host.js';
import type { ExecutionStart } from '../../src/engine/execution-start.js';
import type * as executions from '../../src/engine/execution.js';
import { currentScope } from '../../src/engine/scope.js';
import type { ClaimRow, HistoryRow } from '../../src/store/postgres/rows.js';
import { toClaimed } from '../../src/store/postgres/rows.js';
import type { RecordedStep, StepRecord, SuspendAnswer, Wait } from '../../src/store/store.js';
import type * as stores from '../../src/store/postgres/postgres-store.js';

// The condition "replay-always": whenever an execution has written something and its code is about to be told, and nothing else of it is
// under way, the execution is dropped as at a suspension, and another one of the same ownership begins with what is on record. So code
// goes through each of its awaits once alive, and from then on replayed. Nothing of that is written: the record stays what it is otherwise.

const NEVER = new Promise<never>(() => undefined);

/** What an engine has besides what its executions need. */
type Adopting = Pick<Engine, 'adopt' | 'instanceNameOf' | 'runningExecution' | 'store'>;

interface Readable {
  loadHistory(workflowId: string): Promise<readonly RecordedStep[]>;
  /** Ownerships of which a suspension is only played. */
  readonly dropping: Set<object>;
}

/** A store that says what is on record of one workflow, and plays suspensions. */
export function readableStores<Module extends typeof stores>(original: Module): Module {
  class ReadableStore extends original.PostgresStore implements Readable {
    readonly dropping = new Set<object>();
    readonly #from: { readonly driver: Driver; readonly schema: string };

    constructor(options: stores.PostgresStoreOptions) {
      super(options);
      this.#from = options;
    }

    override suspend(
      ownership: { readonly workflowId: string } & Parameters<stores.PostgresStore['suspend']>[0],
      waits: readonly Wait[],
    ): Promise<SuspendAnswer> {
      if (this.dropping.delete(ownership)) return Promise.resolve({ kind: 'suspended' });
      return super.suspend(ownership, waits);
    }

    async loadHistory(workflowId: string): Promise<readonly RecordedStep[]> {
      const { driver, schema } = this.#from;
      const rows = await driver.query<HistoryRow>(
        `SELECT workflow_id, seq, name, kind, complete, output, error, attempts, child_id, remaining_ms,
                record_version::float8 AS record_version
           FROM "${schema}".load_history(ARRAY[$1::text])`,
        [workflowId],
      );
      return toClaimed([{ workflow_id: workflowId, report: null } as ClaimRow], rows)[0]?.history ?? [];
    }
  }
  return { ...original, PostgresStore: ReadableStore };
}

/** Executions that are replayed from the start at each await. */
export function replayedExecutions<Module extends typeof executions>(original: Module): Module {
  class ReplayedExecution extends original.Execution {
    readonly #begun: ExecutionStart;
    #calls = 0;
    #waits = 0;
    #checkpoints = 0;

    constructor(host: ExecutionHost, start: ExecutionStart) {
      super(host, start);
      this.#begun = start;
    }

    override call<Result>(work: Parameters<executions.Execution['call']>[0]): Promise<Result> {
      return super.call(async (open) => {
        this.#calls += 1;
        try {
          return (await work(open)) as Result;
        } finally {
          this.#calls -= 1;
        }
      });
    }

    override async waiting<Result>(wait: Wait, until: Promise<Result>, dueInMs?: number): Promise<Result> {
      this.#waits += 1;
      try {
        return await super.waiting(wait, until, dueInMs);
      } finally {
        this.#waits -= 1;
      }
    }

    override async checkpoint(record: StepRecord): Promise<Error | undefined> {
      this.#checkpoints += 1;
      try {
        return await super.checkpoint(record);
      } finally {
        this.#checkpoints -= 1;
      }
    }

    override async progress(ready?: Promise<unknown>): Promise<void> {
      await super.progress(ready);
      if (!this.#mayBeDropped || !(await this.#drop())) return;
      await this.#beginAgain();
      await NEVER;
    }

    /**
     * Nothing else runs: the call that has written something is the only one that does not wait. An intent of a step is not the end of
     * a call: dropped there, the step would be one that was interrupted.
     */
    get #mayBeDropped(): boolean {
      if (!this.isRunning || currentScope()?.step !== undefined || !('loadHistory' in this.host.store)) return false;
      if (this.#checkpoints === 0 && this.leavesUnknown) return false;
      return this.isRollback || this.#calls - this.#waits === 1;
    }

    /** False: it is being suspended in earnest, or has come to its end meanwhile. */
    async #drop(): Promise<boolean> {
      const { dropping } = this.host.store as unknown as Readable;
      dropping.add(this.ownership);
      await this.suspend();
      return !dropping.delete(this.ownership) && !this.isRunning;
    }

    async #beginAgain(): Promise<void> {
      const engine = this.host as unknown as Adopting;
      const { definition, self, input, firstSeq, attempt, deadlineInMs, schedule } = this.#begun;
      const { ownership } = this;
      try {
        const history = await (engine.store as unknown as Readable).loadHistory(ownership.workflowId);
        engine.adopt(
          {
            ownership,
            name: definition.name,
            instance: engine.instanceNameOf(definition, self) ?? null,
            attempts: attempt,
            reason: 'claimed',
            deadlineInMs: deadlineInMs === null ? null : Math.max(0, deadlineInMs - this.ageMs),
            input,
            firstSeq,
            history,
            schedule,
          },
          0,
        );
        // A control operation that came meanwhile found nobody here.
        if (!(await engine.store.verifyOwnership(ownership))) engine.runningExecution(ownership.workflowId)?.lose();
      } catch {
        // The store was closed: nothing runs here any more, and the row is given back like that of a process that died.
      }
    }
  }
  return { ...original, Execution: ReplayedExecution };
}
