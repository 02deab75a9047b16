/** Why a signal has fired, as an error. */
export function abortReason({ reason }: { readonly reason: unknown }): Error {
  return reason instanceof Error ? reason : new Error('Aborted.', { cause: reason });
}

/** Turns a caller's signal into a subscription: calls back once when it aborts; returns how to take that back. */
export function onAbort(signal: AbortSignal): (callback: (reason: Error) => void) => () => void {
  return (callback) => {
    const listener = (): void => {
      callback(abortReason(signal));
    };
    if (signal.aborted) queueMicrotask(listener);
    signal.addEventListener('abort', listener, { once: true });
    return () => {
      signal.removeEventListener('abort', listener);
    };
  };
}
