import type { Driver, SqlParameter, SqlRow } from '../../drivers/driver.js';
import type {
  AddAnswer,
  ClaimedEvent,
  EventOutcome,
  OutboxStore,
  OutsideEvent,
  SettleAnswer,
  Settlement,
  TopicLimit,
} from '../outbox-store.js';
import type { StatementRunner } from '../queue-store.js';
import { RequestWriter, type RequestStatement } from './request-writer.js';

/** Longest wait for an answer to a claim, in milliseconds: a connection that is dead must not stop the deliveries. */
const CLAIM_TIMEOUT_MS = 10_000;

export interface PostgresOutboxStoreOptions {
  readonly driver: Driver;
  /** Validated by the caller, quoted here. */
  readonly schema: string;
  /** Tells relays that there may be something to deliver. */
  readonly announce: () => void;
}

interface ClaimedRow extends SqlRow {
  readonly event_id: string;
  readonly topic: string;
  readonly event_key: string | null;
  readonly payload: string;
  readonly token: string;
  readonly attempts: number;
  readonly workflow_id: string | null;
  readonly added_ms: number;
}

interface LostRow extends SqlRow {
  readonly item: number;
}

/** The outbox on PostgreSQL: calls the functions of sql/functions by name, and nothing else. */
export class PostgresOutboxStore implements OutboxStore {
  readonly #driver: Driver;
  readonly #schema: string;
  readonly #announce: () => void;
  readonly #adding: RequestWriter<OutsideEvent, AddAnswer, SqlRow>;
  readonly #settling: RequestWriter<Settlement, SettleAnswer, LostRow>;

  constructor({ driver, schema, announce }: PostgresOutboxStoreOptions) {
    this.#driver = driver;
    this.#schema = schema;
    this.#announce = announce;
    this.#adding = new RequestWriter(driver, addStatement(schema));
    this.#settling = new RequestWriter(driver, settleStatement(schema));
  }

  async add(event: OutsideEvent): Promise<AddAnswer> {
    const answer = await this.#adding.submit(event);
    if (answer.kind === 'added') this.#announce();
    return answer;
  }

  async addIn(transaction: StatementRunner, event: OutsideEvent): Promise<void> {
    await transaction(`SELECT "${this.#schema}".add_events_in_transaction($1::text::json)`, JSON.stringify([event]));
  }

  async claim(topics: readonly TopicLimit[], leaseMs: number): Promise<readonly ClaimedEvent[]> {
    const rows = await this.#driver.query<ClaimedRow>(
      `SELECT event_id::text AS event_id, topic, event_key, payload, token::text AS token, attempts, workflow_id,
              (extract(epoch FROM added_at) * 1000)::float8 AS added_ms
         FROM "${this.#schema}".claim_events($1::text[], $2::int4[], $3::int8)`,
      [topics.map(({ topic }) => topic), topics.map(({ limit }) => limit), leaseMs],
      { prepare: 'holdfast_claim_events', timeoutMs: CLAIM_TIMEOUT_MS },
    );
    return rows.map((row) => ({
      eventId: row.event_id,
      topic: row.topic,
      key: row.event_key,
      payload: row.payload,
      token: row.token,
      attempts: row.attempts,
      workflowId: row.workflow_id,
      addedAt: new Date(row.added_ms),
    }));
  }

  settle(settlement: Settlement): Promise<SettleAnswer> {
    return this.#settling.submit(settlement);
  }

  close(): void {
    this.#adding.close();
    this.#settling.close();
  }
}

function addStatement(schema: string): RequestStatement<OutsideEvent, AddAnswer, SqlRow> {
  return {
    name: 'holdfast_add_events',
    text: `SELECT "${schema}".add_events($1::text::json)`,
    columns: (events) => [JSON.stringify(events)],
    answers: (events) => events.map((): AddAnswer => ({ kind: 'added' })),
    payloadBytes: ({ payload }) => Buffer.byteLength(payload),
    // In the order of the calls, whatever holds one of them up.
    lineOf: ({ topic, key }) => JSON.stringify([topic, key]),
  };
}

function settleStatement(schema: string): RequestStatement<Settlement, SettleAnswer, LostRow> {
  const types = ['uuid[]', 'uuid[]', 'text[]', 'int8[]', 'text[]', 'text[]'];
  const placeholders = types.map((type, index) => `$${String(index + 1)}::${type}`).join(', ');
  return {
    name: 'holdfast_settle_events',
    text: `SELECT item FROM "${schema}".settle_events(${placeholders})`,
    columns: (settlements): SqlParameter[] => [
      settlements.map(({ eventId }) => eventId),
      settlements.map(({ token }) => token),
      settlements.map(({ outcome }) => outcome.kind),
      settlements.map(({ outcome }) => (outcome.kind === 'retry' ? outcome.delayMs : null)),
      settlements.map(({ outcome }) => (outcome.kind === 'dead' ? outcome.reason : null)),
      settlements.map(({ outcome }) => errorOf(outcome)),
    ],
    answers: (settlements, rows) => {
      const lost = new Set(rows.map(({ item }) => item));
      return settlements.map((_, index): SettleAnswer => ({ kind: lost.has(index + 1) ? 'lost' : 'settled' }));
    },
    payloadBytes: ({ outcome }) => Buffer.byteLength(errorOf(outcome) ?? ''),
  };
}

function errorOf(outcome: EventOutcome): string | null {
  return outcome.kind === 'retry' || outcome.kind === 'dead' ? outcome.error : null;
}
