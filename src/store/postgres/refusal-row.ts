import type { SqlRow } from '../../drivers/driver.js';

/** What a refused item was answered with. */
export interface RefusalRow extends SqlRow {
  readonly part?: 'start' | 'checkpoint' | 'complete';
  readonly item: number | null;
  readonly answer: string | null;
  readonly found_status: string | null;
  readonly found_version: number | null;
  readonly found_detail: string | null;
  readonly remaining_ms?: number | null;
  readonly child?: 'created' | 'attached' | null;
  /** The workflow that was enqueued or attached to. */
  readonly child_id?: string | null;
  /** What a function of its own answers with besides. */
  readonly reply?: string | null;
}
