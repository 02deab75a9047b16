import type { StepRecord } from '../../store.js';
import { MARKER, type SourceTransaction } from './source.js';

/** Which call of a workflow is decided, and by whom. */
export interface CompletionKey {
  readonly installation: string;
  readonly workflowId: string;
  readonly seq: number;
  readonly generation: number;
  /** The latest generation of the workflow: with the epoch, the order of its owners. */
  readonly ownerGeneration: number;
  readonly epoch: number;
}

/** What the table of completions knows of a call. */
export type KnownCompletion =
  | { readonly answer: 'run' }
  | { readonly answer: 'fenced' }
  | {
      readonly answer: 'done';
      readonly output: string | null;
      readonly error: string | null;
      /** JSON text of a list. */
      readonly events: string | null;
    };

/** The statements of sql/completion, in one schema of the application's database. */
export class Completions {
  readonly #schema: string;

  constructor(schema: string) {
    this.#schema = schema;
  }

  /** Announces an owner. False: a later one has been here. */
  async enter(open: SourceTransaction, key: CompletionKey): Promise<boolean> {
    const reply = await open.reply(
      `SELECT "${this.#schema}".enter_completions(p.installation, p.workflow_id, p.owner_generation, p.epoch)::text AS reply
FROM json_to_record($1::text::json) AS p (installation uuid, workflow_id text, owner_generation int8, epoch int8)`,
      parameterOf(key),
    );
    return reply === 'true';
  }

  async begin(open: SourceTransaction, key: CompletionKey): Promise<KnownCompletion> {
    const reply = await open.reply(
      `SELECT "${this.#schema}".begin_completion(p.installation, p.workflow_id, p.seq, p.generation, p.owner_generation, p.epoch)
  AS reply
FROM json_to_record($1::text::json) AS p (installation uuid, workflow_id text, seq int4, generation int8,
  owner_generation int8, epoch int8)`,
      parameterOf(key),
    );
    return JSON.parse(reply) as KnownCompletion;
  }

  /** @returns False when the body has ended the transaction. */
  async record(open: SourceTransaction, key: CompletionKey, record: StepRecord): Promise<boolean> {
    const reply = await open.reply(
      `SELECT "${this.#schema}".record_completion(p.marker, p.installation, p.workflow_id, p.seq, p.generation, p.epoch,
  p.output, p.error, p.events) AS reply
FROM json_to_record($1::text::json) AS p (marker text, installation uuid, workflow_id text, seq int4, generation int8,
  epoch int8, output text, error text, events text)`,
      parameterOf(key, {
        marker: MARKER,
        output: record.output,
        error: record.error,
        events: JSON.stringify(record.events ?? []),
      }),
    );
    return (JSON.parse(reply) as { readonly answer: string }).answer === 'recorded';
  }
}

function parameterOf(key: CompletionKey, more: object = {}): string {
  return JSON.stringify({
    installation: key.installation,
    workflow_id: key.workflowId,
    seq: key.seq,
    generation: key.generation,
    owner_generation: key.ownerGeneration,
    epoch: key.epoch,
    ...more,
  });
}
