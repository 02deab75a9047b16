import type { Duration } from '../api/duration.js';
import type { Signal, SignalOptions } from '../api/signals.js';
import { checkKnownOptions } from './known-options.js';
import { checkTopic } from './message-arguments.js';
import { receive } from './message-functions.js';
import { checkIsSchema } from './schema.js';

const SIGNAL_OPTIONS: ReadonlySet<string> = new Set<keyof SignalOptions<unknown, unknown>>(['schema']);

/**
 * A typed topic. Define it once, beside the workflow, and use it on both sides.
 *
 * @param name The topic, 1 to 255 bytes.
 * @throws InvalidArgumentError
 * @example
 * const approve = defineSignal<{ by: string }>('approve');
 * const approval = await approve.receive({ timeout: '3d' }); // in the workflow
 * await handle.signal(approve, { by: 'ada' }); // outside
 */
export function defineSignal<Sent, Received = Sent>(
  name: string,
  options: SignalOptions<Sent, Received> = {},
): Signal<Sent, Received> {
  checkTopic(name);
  checkKnownOptions(options, SIGNAL_OPTIONS, 'defineSignal');
  checkIsSchema(options.schema, 'schema');
  const { schema } = options;
  const receiveOptions = schema === undefined ? {} : { schema };
  function receiveSignal(limit: { readonly timeout: Duration }): Promise<Received | undefined>;
  function receiveSignal(): Promise<Received>;
  function receiveSignal(limit?: { readonly timeout: Duration }): Promise<Received | undefined> {
    return receive<Received>(name, { ...receiveOptions, ...limit });
  }
  return { kind: 'signal', name, ...receiveOptions, receive: receiveSignal };
}
