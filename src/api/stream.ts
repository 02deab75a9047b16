/** What `writeStream` takes besides key and value. */
export interface WriteStreamOptions {
  /**
   * In the body of a step: each attempt's first, second, … entry with this option is the same entry as that of every other
   * attempt, and is written by whichever comes to it first, also after a crash. Default false: what an attempt has written
   * stands, and the next one writes its own. A call of the workflow itself is written once in any case.
   */
  readonly oncePerStep?: boolean;
}

/** What `readStream` takes besides workflow and key. */
export interface ReadStreamOptions {
  /** The offset to begin with: one more than that of the last entry you are done with. Default 0. */
  readonly from?: number;
  /** Ends the reading: it then throws the signal's reason. */
  readonly signal?: AbortSignal;
}

/** An entry of a stream. */
export interface StreamEntry<Value> {
  /** 0, 1, 2, … without a gap. */
  readonly offset: number;
  readonly value: Value;
  /** The number of the durable call that wrote it: of the step in whose body it was written, or of `writeStream` itself. */
  readonly seq: number;
  /** The attempt of that step, from 1 in each epoch. An attempt's entries can be followed by those of the next one. */
  readonly attempt: number;
  /** The epoch of the execution that wrote it; 0 in a fork for what it has got from its source. */
  readonly epoch: number;
  /** By the database's clock. */
  readonly writtenAt: Date;
}
