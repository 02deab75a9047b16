import type { FromWorker, ToWorker } from './messages.js';

// Makes one step of one order hang, so that something can be done to its process at that moment. The story waits for the
// announcement, never for time.

/** Environment variable with the call that is to hang in a worker, as JSON. */
export const HOLD_VARIABLE = 'CHECKOUT_HOLD';

export interface Hold {
  readonly orderId: string;
  readonly step: string;
}

/** Announces the call and hangs until the story lets it go on, if it is the one that this process is to hang in. */
export async function holdHere(orderId: string, step: string): Promise<void> {
  const text = process.env[HOLD_VARIABLE];
  if (text === undefined) return;
  const hold = JSON.parse(text) as Hold;
  if (hold.orderId !== orderId || hold.step !== step) return;
  const letGo = new Promise<void>((resolve) => {
    const listener = (message: ToWorker): void => {
      if (message.kind !== 'let-go') return;
      process.off('message', listener);
      resolve();
    };
    process.on('message', listener);
  });
  process.send?.({ kind: 'holding', orderId, step } satisfies FromWorker);
  await letGo;
}
