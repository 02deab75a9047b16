import type { Denied, Refused } from './refusals.js';

/** What one call of `writeStream` or `closeStream` writes. Texts are encoded values. */
export interface StreamWrite {
  readonly stream: string;
  /** Null: closes the stream. */
  readonly value: string | null;
  /** The durable call that it belongs to. */
  readonly seq: number;
  readonly by:
    | {
        /** A call of the workflow, recorded along with the entry. */
        readonly kind: 'stream' | 'stream-close';
        /** Its recorded result. */
        readonly output: string;
        readonly elapsedMs: number;
      }
    | {
        /** The body of a step. */
        readonly kind: 'attempt';
        readonly attempt: number;
        /** The place among what the step writes to this stream, when each place is to be written once; else null. */
        readonly oncePlace: number | null;
      };
}

export type StreamWriteAnswer =
  /** Or there already, by an earlier attempt of the step. */
  | { readonly kind: 'written' }
  /** The stream is closed: nothing was written. */
  | { readonly kind: 'stream-closed' }
  | Denied
  | Refused;

/** Up to where somebody has read a stream. */
export interface StreamPosition {
  readonly workflowId: string;
  readonly stream: string;
  /** The offset of the entry to be read next. */
  readonly next: number;
  /** The nonce of the entry that was read last; null: none was. */
  readonly lastNonce: string | null;
}

export interface StoredEntry {
  readonly offset: number;
  readonly value: string;
  readonly seq: number;
  readonly attempt: number;
  readonly epoch: number;
  readonly nonce: string;
  readonly writtenAt: Date;
}

export type StreamPage =
  /** There is no such workflow. */
  | { readonly kind: 'missing' }
  /** What was read has been taken back: the position means nothing any more. */
  | { readonly kind: 'rewritten' }
  | {
      readonly kind: 'page';
      readonly entries: readonly StoredEntry[];
      /** The stream has more than this page. */
      readonly hasMore: boolean;
      /** Nothing more will be written. */
      readonly isOver: boolean;
    };

/** What readers of streams ask. */
export interface StreamReads {
  /** At most `limit` entries and `bytes` of values, but at least one entry. */
  readStream(
    position: StreamPosition,
    limits: { readonly entries: number; readonly bytes: number },
  ): Promise<StreamPage>;
  /** Which of these would find something new; their places in the list. */
  changedStreams(positions: readonly StreamPosition[]): Promise<readonly number[]>;
}
