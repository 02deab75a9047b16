import type { GetEventOptions, SendOptions } from '../api/messages.js';
import type { Query, Signal, Update, UpdateOptions } from '../api/signals.js';
import type { StandardSchema } from '../api/standard-schema.js';
import type { ReadStreamOptions, StreamEntry } from '../api/stream.js';
import type { HandleCancelOptions, WorkflowHandle, WorkflowStatus } from '../api/workflow-handle.js';
import { checkIsDefinition } from './check-definition.js';
import { awaitOutcome } from './durable-calls.js';
import { checkKnownOptions } from './known-options.js';
import type { Outcome } from './outcome.js';
import { durableExecution } from './scope.js';
import { StreamReading, type StreamHost } from './stream-reading.js';
import { quietly } from './quietly.js';

/** What a handle needs of the Holdfast that made it. */
export interface HandleHost extends StreamHost {
  waitForResult(workflowId: string, signal: AbortSignal | undefined): Promise<Outcome>;
  statusOf(workflowId: string): Promise<WorkflowStatus>;
  cancel(workflowId: string, options: HandleCancelOptions): Promise<void>;
  readonly messaging: HandleMessaging;
}

/** How a handle talks to its workflow: by durable calls inside a workflow, by plain ones everywhere else. */
export interface HandleMessaging {
  send(
    workflowId: string,
    topic: string,
    message: unknown,
    options: SendOptions,
    schema?: StandardSchema,
  ): Promise<void>;
  getEvent(workflowId: string, key: string, options: GetEventOptions): Promise<unknown>;
  query<Arguments extends unknown[], Result>(
    workflowId: string,
    query: Query<Arguments, Result>,
    args: Arguments,
  ): Promise<Result>;
  update<Sent, Result>(
    workflowId: string,
    update: Pick<Update<Sent, Result, unknown>, 'name' | 'input'>,
    input: Sent,
    options: UpdateOptions,
  ): Promise<Result>;
}

const RESULT_OPTIONS: ReadonlySet<string> = new Set(['signal']);
const CANCEL_OPTIONS: ReadonlySet<string> = new Set<keyof HandleCancelOptions>(['reason', 'compensate']);

export class Handle<Result> implements WorkflowHandle<Result> {
  readonly workflowId: string;
  readonly #host: HandleHost;

  constructor(host: HandleHost, workflowId: string) {
    this.#host = host;
    this.workflowId = workflowId;
  }

  result(options: { readonly signal?: AbortSignal } = {}): Promise<Result> {
    return quietly(async () => {
      checkKnownOptions(options, RESULT_OPTIONS, 'result');
      const execution = durableExecution();
      if (execution !== undefined) return (await awaitOutcome(execution, this.workflowId)) as Result;
      const { output, error } = await this.#host.waitForResult(this.workflowId, options.signal);
      if (error !== null) throw await this.#host.serializer.decode(error);
      if (output === null) return undefined as Result;
      const value = this.#host.serializer.decode(output);
      return (value instanceof Promise ? await value : value) as Result;
    });
  }

  readStream<Value = unknown>(key: string, options: ReadStreamOptions = {}): AsyncIterable<StreamEntry<Value>> {
    return new StreamReading<Value>(this.#host, this.workflowId, key, options);
  }

  status(): Promise<WorkflowStatus> {
    return this.#host.statusOf(this.workflowId);
  }

  async cancel(options: HandleCancelOptions = {}): Promise<void> {
    checkKnownOptions(options, CANCEL_OPTIONS, 'cancel');
    return this.#host.cancel(this.workflowId, options);
  }

  send(topic: string, message: unknown, options: SendOptions = {}): Promise<void> {
    return this.#host.messaging.send(this.workflowId, topic, message, options);
  }

  getEvent<Value>(key: string, options: GetEventOptions = {}): Promise<Value> {
    return this.#host.messaging.getEvent(this.workflowId, key, options) as Promise<Value>;
  }

  signal<Sent>(signal: Signal<Sent, unknown>, value: Sent, options: SendOptions = {}): Promise<void> {
    return quietly(async () => {
      checkIsDefinition(signal, 'signal');
      return this.#host.messaging.send(this.workflowId, signal.name, value, options, signal.schema);
    });
  }

  async query<Arguments extends unknown[], Answer>(
    query: Query<Arguments, Answer>,
    ...args: Arguments
  ): Promise<Answer> {
    checkIsDefinition(query, 'query');
    return this.#host.messaging.query(this.workflowId, query, args);
  }

  update<Sent, Answer, Received>(
    update: Update<Sent, Answer, Received>,
    input: Sent,
    options: UpdateOptions = {},
  ): Promise<Answer> {
    return quietly(async () => {
      checkIsDefinition(update, 'update');
      return this.#host.messaging.update(this.workflowId, update, input, options);
    });
  }
}
