/**
 * A value that is here, or a promise of it: asynchronous only where something of the user's is (a codec, a schema). Each promise
 * that is not made saves about 0.5 µs: inside workflows every one of them is tracked for its scope.
 */
export type Soon<Value> = Value | Promise<Value>;

/** Goes on with the value: at once when it is here. */
export function whenHere<Value, Result>(value: Soon<Value>, next: (value: Value) => Soon<Result>): Soon<Result> {
  return value instanceof Promise ? value.then(next) : next(value);
}

/** The same for several values, which are usually all here. */
export function allHere<Value>(values: readonly Soon<Value>[]): Soon<readonly Value[]> {
  for (const value of values) if (value instanceof Promise) return Promise.all(values);
  return values as readonly Value[];
}
