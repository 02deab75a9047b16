import type { SqlParameter, SqlRow } from '../../drivers/driver.js';
import type { StreamPage, StreamPosition, StreamReads } from '../stream-store.js';

/** Asks until the database answers. */
type Ask = <Row extends SqlRow>(
  prepare: string,
  text: string,
  parameters: readonly SqlParameter[],
) => Promise<readonly Row[]>;

interface PageRow extends SqlRow {
  readonly is_over: boolean;
  readonly is_rewritten: boolean;
  readonly has_more: boolean;
  /** Null: the page is empty. */
  readonly entry_offset: number | null;
  readonly value: string;
  readonly seq: number;
  readonly attempt: number;
  readonly epoch: number;
  readonly nonce: string;
  readonly written_ms: number;
}

export class PostgresStreamReads implements StreamReads {
  readonly #ask: Ask;
  readonly #schema: string;

  constructor(ask: Ask, schema: string) {
    this.#ask = ask;
    this.#schema = schema;
  }

  async readStream(
    { workflowId, stream, next, lastNonce }: StreamPosition,
    limits: { readonly entries: number; readonly bytes: number },
  ): Promise<StreamPage> {
    const rows = await this.#ask<PageRow>(
      'holdfast_read_stream',
      `SELECT is_over, is_rewritten, has_more, entry_offset::float8 AS entry_offset, value, seq, attempt,
              epoch::float8 AS epoch, nonce::text AS nonce, (extract(epoch FROM written_at) * 1000)::float8 AS written_ms
         FROM "${this.#schema}".read_stream($1::text, $2::text, $3::int8, $4::uuid, $5::int4, $6::int8)`,
      [workflowId, stream, next, lastNonce, limits.entries, limits.bytes],
    );
    const [first] = rows;
    if (first === undefined) return { kind: 'missing' };
    if (first.is_rewritten) return { kind: 'rewritten' };
    const entries = rows.flatMap(
      ({ entry_offset: offset, value, seq, attempt, epoch, nonce, written_ms: writtenMs }) =>
        offset === null ? [] : [{ offset, value, seq, attempt, epoch, nonce, writtenAt: new Date(writtenMs) }],
    );
    return { kind: 'page', entries, hasMore: rows.at(-1)?.has_more ?? false, isOver: first.is_over };
  }

  async changedStreams(positions: readonly StreamPosition[]): Promise<readonly number[]> {
    const rows = await this.#ask<{ readonly item: number }>(
      'holdfast_changed_streams',
      `SELECT item FROM "${this.#schema}".changed_streams($1::text[], $2::text[], $3::int8[], $4::uuid[])`,
      [
        positions.map(({ workflowId }) => workflowId),
        positions.map(({ stream }) => stream),
        positions.map(({ next }) => next),
        positions.map(({ lastNonce }) => lastNonce),
      ],
    );
    return rows.map(({ item }) => item - 1);
  }
}
