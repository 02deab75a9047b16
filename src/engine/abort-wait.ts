/** Turns a caller's signal into a subscription: calls back once when it aborts; returns how to take that back. */
export function onAbort(signal: AbortSignal): (callback: (reason: Error) => void) => () => void {
  return (callback) => {
    const listener = (): void => {
      callback(signal.reason instanceof Error ? signal.reason : new Error('Aborted.', { cause: signal.reason }));
    };
    if (signal.aborted) queueMicrotask(listener);
    signal.addEventListener('abort', listener, { once: true });
    return () => {
      signal.removeEventListener('abort', listener);
    };
  };
}
