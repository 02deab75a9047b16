/** What can be launched in place of another. */
interface Closable {
  close(options: { readonly drainMs: number }): Promise<void>;
}

const RUNNING = Symbol.for('holdfast.running.v1');

/**
 * Launches in place of the Holdfast that was launched under the same key before, if there is one. The map outlives the
 * evaluation of a module, which is the point; launches of one key follow one another.
 */
export async function replaceRunning<Launched extends Closable>(
  key: string | undefined,
  launch: () => Promise<Launched>,
): Promise<Launched> {
  if (key === undefined) return launch();
  const holder = globalThis as { [RUNNING]?: Map<string, Promise<Closable>> | undefined };
  const running = (holder[RUNNING] ??= new Map<string, Promise<Closable>>());
  const before = running.get(key);
  const next = (async () => {
    // One that failed to launch has nothing to be closed.
    const previous = await before?.catch(() => undefined);
    await previous?.close({ drainMs: 0 });
    return launch();
  })();
  running.set(key, next);
  return next;
}
