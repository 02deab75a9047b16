import type { Outcome } from './outcome.js';
import type { Serializer } from './serializer.js';

/** A value that is being decoded, which may take a while and fail. */
export interface Decoding {
  /** Resolves when it is decoded or has failed; undefined: it is. */
  readonly done: Promise<void> | undefined;
  /** To be called when it is done. Returns the value, or throws what decoding it has thrown. */
  readonly take: () => unknown;
}

/**
 * Begins to decode. With a codec that takes its time, what comes of it must not reach the workflow's code whenever it is done, but
 * in the order of the record: so a call decodes first, and takes its turn then.
 */
export function startDecoding(serializer: Serializer, text: string): Decoding {
  let take = (): unknown => undefined;
  const keep = (value: unknown): void => {
    take = () => value;
  };
  const fail = (error: unknown): void => {
    take = () => {
      throw error;
    };
  };
  let done: Promise<void> | undefined;
  try {
    const decoded = serializer.decode(text);
    if (decoded instanceof Promise) done = decoded.then(keep, fail);
    else keep(decoded);
  } catch (error) {
    fail(error);
  }
  return { done, take: () => take() };
}

const NOTHING: Decoding = { done: undefined, take: () => undefined };

/** The same for a recorded result: `take` returns its value, or throws its error. */
export function startDecodingResult(
  serializer: Serializer,
  { output, error }: Pick<Outcome, 'output' | 'error'>,
): Decoding {
  if (error === null) return output === null ? NOTHING : startDecoding(serializer, output);
  const { done, take } = startDecoding(serializer, error);
  return {
    done,
    take: () => {
      throw take();
    },
  };
}
