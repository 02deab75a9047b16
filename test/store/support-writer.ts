import { randomUUID } from 'node:crypto';

import type { Driver, SqlParameter, SqlRow } from '../../src/drivers/driver.js';
import { PostgresStore } from '../../src/store/postgres/postgres-store.js';
import type {
  ChildStart,
  ExecutorIdentity,
  OutcomeRecord,
  Ownership,
  StartRequest,
  StepRecord,
} from '../../src/store/store.js';
import type { ProtocolBench } from './support-protocol.js';

/** A statement on its way through a tapped driver. */
export interface SentStatement {
  readonly text: string;
  /** Without the hash that the driver adds. */
  readonly name: string;
  readonly parameters: readonly SqlParameter[];
}

/** Sees each statement before it is sent; may hold it back, or fail it in the server's place. */
export type Tap = (statement: SentStatement) => void | Promise<void>;

/** A driver whose statements can be seen, held back and failed; `after` hears of those that were answered. */
export function tapDriver(driver: Driver, tap: Tap, after: (statement: SentStatement) => void): Driver {
  return {
    name: driver.name,
    maxConnections: driver.maxConnections,
    query: async <Row extends SqlRow>(...call: Parameters<Driver['query']>) => {
      const [text, parameters = [], options] = call;
      const statement = { text, name: options?.prepare ?? '', parameters };
      await tap(statement);
      try {
        return await driver.query<Row>(...call);
      } finally {
        after(statement);
      }
    },
    transaction: (body, options) => driver.transaction(body, options),
    listen: (channels, handlers) => driver.listen(channels, handlers),
    close: () => driver.close(),
  };
}

export function isWrite({ name }: SentStatement): boolean {
  return name === 'holdfast_checkpoint_one' || name === 'holdfast_record_intent' || name.startsWith('holdfast_write_');
}

/** A store of its own on the bench's database, and an executor of its own. */
export class WriterBench {
  readonly store: PostgresStore;
  readonly executor: ExecutorIdentity;
  readonly sent: SentStatement[] = [];
  /** Called with each statement; may be replaced by the test. */
  tap: Tap = () => undefined;
  /** Called with each statement that was answered. */
  answered: (statement: SentStatement) => void = () => undefined;

  private constructor(bench: ProtocolBench, driver: Driver, executor: ExecutorIdentity) {
    this.executor = executor;
    const tapped = tapDriver(
      driver,
      (statement) => {
        this.sent.push(statement);
        return this.tap(statement);
      },
      (statement) => this.answered(statement),
    );
    this.store = new PostgresStore({ driver: tapped, schema: bench.schema, notifications: false });
  }

  static async open(bench: ProtocolBench, { url }: { readonly url?: string } = {}): Promise<WriterBench> {
    const executorId = `e-${randomUUID()}`;
    const driver = await bench.driver(url === undefined ? {} : { url });
    const writer = new WriterBench(bench, driver, { executorId, incarnation: 1 });
    await writer.store.registerExecutor({
      executorId,
      appVersion: 'v1',
      leaseMs: 3_600_000,
      host: 'host',
      processId: 1,
    });
    writer.sent.length = 0;
    return writer;
  }

  get writes(): SentStatement[] {
    return this.sent.filter(isWrite);
  }

  startRequest(overrides: Partial<StartRequest> = {}): StartRequest {
    return {
      workflowId: `w-${randomUUID()}`,
      name: 'flow',
      instance: null,
      input: '"input"',
      maxAttempts: 100,
      timeoutMs: null,
      attributes: null,
      executor: this.executor,
      appVersion: 'v1',
      token: randomUUID(),
      ...overrides,
    };
  }

  async started(overrides: Partial<StartRequest> = {}): Promise<Ownership> {
    const answer = await this.store.start(this.startRequest(overrides));
    if (answer.kind !== 'started') throw new Error(`Not started: ${answer.kind}.`);
    return answer.ownership;
  }

  /** Started workflows, and an empty log of statements. */
  async startedMany(count: number): Promise<Ownership[]> {
    const ownerships = await Promise.all(Array.from({ length: count }, () => this.started()));
    this.sent.length = 0;
    return ownerships;
  }
}

export function step(seq: number, overrides: Partial<StepRecord> = {}): StepRecord {
  return {
    seq,
    name: 'work',
    kind: 'step',
    output: '"done"',
    error: null,
    attempts: 1,
    attemptErrors: null,
    childId: null,
    elapsedMs: 1,
    ...overrides,
  };
}

export function child(overrides: Partial<ChildStart> = {}): ChildStart {
  return {
    workflowId: `c-${randomUUID()}`,
    name: 'child-flow',
    instance: null,
    input: '"input"',
    maxAttempts: 100,
    timeoutMs: null,
    attributes: null,
    token: randomUUID(),
    onParentCancel: 'cancel',
    ...overrides,
  };
}

export const SUCCESS: OutcomeRecord = { status: 'SUCCESS', output: '"result"', error: null, attention: null };
