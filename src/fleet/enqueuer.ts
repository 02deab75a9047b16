import type { EnqueueResult } from '../api/enqueue-result.js';
import type { CallersTransaction, EnqueueItem, EnqueueOptions } from '../api/queue.js';
import type { WorkflowHandle } from '../api/workflow-handle.js';
import type { StartOptions } from '../api/workflow-options.js';
import type { WorkflowDefinition } from '../engine/definitions.js';
import { checkIsList, checkItem } from '../engine/enqueue-items.js';
import { enqueueRefusalError } from '../engine/enqueue-refusal.js';
import { prepareEnqueue, startOptionsOf } from '../engine/prepare-enqueue.js';
import type { OutcomeWaiter } from '../engine/outcome-waiter.js';
import type { Serializer } from '../engine/serializer.js';
import { allHere, whenHere, type Soon } from '../engine/soon.js';
import { nextTurn } from '../engine/timer.js';
import { InvalidArgumentError } from '../errors/admin-errors.js';
import { WorkflowIdConflictError, WriteRefusedError } from '../errors/workflow-errors.js';
import type { Runtime } from '../runtime/runtime.js';
import type { EnqueueAnswer, QueueStore } from '../store/queue-store.js';
import type { EnqueueRequest, WorkflowStart } from '../store/store.js';
import { runnerOf } from './callers-transaction.js';

/** Workflows that one call of `enqueueMany` takes. */
const MAX_ITEMS = 100_000;
/** Workflows that are prepared at once, before others in the process have their turn: as many as go in one statement. */
const PREPARED_AT_ONCE = 500;

export interface EnqueuerParts {
  readonly runtime: Runtime;
  readonly store: QueueStore;
  /** Checks and encodes what a workflow is to be started with. */
  readonly prepare: (
    definition: WorkflowDefinition,
    args: readonly unknown[],
    options: StartOptions,
    workflowId: string,
  ) => Soon<WorkflowStart>;
  readonly serializer: Serializer;
  readonly handleOf: (workflowId: string) => WorkflowHandle;
  /** Those who wait here for outcomes. */
  readonly waiter: Pick<OutcomeWaiter, 'willEnqueue' | 'notEnqueued'>;
}

/** Enqueues workflows from outside of workflows. */
export class Enqueuer {
  readonly #parts: EnqueuerParts;

  constructor(parts: EnqueuerParts) {
    this.#parts = parts;
  }

  async enqueue(
    definition: WorkflowDefinition,
    options: EnqueueOptions,
    args: readonly unknown[],
  ): Promise<WorkflowHandle> {
    const request = await this.#prepare(definition, options, args);
    const [answer] = await this.#send([request], options.transaction);
    if (answer === undefined) throw new TypeError('The store did not answer.');
    const result = this.#resultOf(request, answer);
    if (!result.ok) throw result.error;
    return result.handle;
  }

  async enqueueMany(
    definition: WorkflowDefinition,
    common: EnqueueOptions,
    given: readonly EnqueueItem<unknown[]>[],
  ): Promise<readonly EnqueueResult<unknown>[]> {
    checkIsList(given);
    if (given.length > MAX_ITEMS) {
      throw new InvalidArgumentError(`One call enqueues at most ${String(MAX_ITEMS)} workflows.`);
    }
    // The caller may go on with the list, or empty it, before the last ones are prepared. A hole in it is an item like others.
    const items = Array.from(given);
    const prepared: (EnqueueRequest | Error)[] = [];
    const sent: Promise<readonly EnqueueAnswer[]>[] = [];
    const atOnce = common.transaction === undefined ? PREPARED_AT_ONCE : MAX_ITEMS;
    for (let from = 0; from < items.length; from += atOnce) {
      // The database stores the first ones while the others are prepared.
      if (from > 0) await nextTurn(this.#parts.runtime);
      const part = await allHere(
        items.slice(from, from + atOnce).map((item) => this.#attempt(definition, common, item)),
      );
      prepared.push(...part);
      const requests = part.filter((item): item is EnqueueRequest => !(item instanceof Error));
      if (requests.length === 0) continue;
      const answers = this.#send(requests, common.transaction);
      // Heard of below, when all are under way.
      answers.catch(() => undefined);
      sent.push(answers);
    }
    const answers = (await Promise.all(sent)).flat();
    let next = 0;
    return prepared.map((item) => {
      if (item instanceof Error) return { ok: false, error: item };
      const answer = answers[next++];
      if (answer === undefined) throw new TypeError('The store did not answer for every workflow.');
      return this.#resultOf(item, answer);
    });
  }

  #attempt(
    definition: WorkflowDefinition,
    common: EnqueueOptions,
    item: EnqueueItem<unknown[]>,
  ): Soon<EnqueueRequest | Error> {
    try {
      const { args, ...own } = checkItem(item);
      const prepared = this.#prepare(definition, { ...common, ...own }, args);
      return prepared instanceof Promise ? prepared.catch(asError) : prepared;
    } catch (error) {
      return asError(error);
    }
  }

  #prepare(definition: WorkflowDefinition, options: EnqueueOptions, args: readonly unknown[]): Soon<EnqueueRequest> {
    const { prepare, runtime, serializer } = this.#parts;
    const start = prepare(definition, args, startOptionsOf(options), options.workflowId ?? runtime.sortableUuid());
    return whenHere(start, (checked: WorkflowStart) => prepareEnqueue(checked, options.queue, options, serializer));
  }

  async #send(
    requests: readonly EnqueueRequest[],
    transaction: CallersTransaction | undefined,
  ): Promise<readonly EnqueueAnswer[]> {
    const { store, waiter } = this.#parts;
    if (transaction !== undefined) return store.enqueueIn(runnerOf(transaction), requests);
    for (const { workflowId } of requests) waiter.willEnqueue(workflowId);
    const answers = await store.enqueue(requests);
    for (let place = 0; place < requests.length; place++) {
      if (answers[place]?.kind !== 'enqueued') waiter.notEnqueued(requests[place]?.workflowId ?? '');
    }
    return answers;
  }

  #resultOf(request: EnqueueRequest, answer: EnqueueAnswer): EnqueueResult<unknown> {
    const { workflowId, name, deduplication } = request;
    switch (answer.kind) {
      case 'enqueued':
        return { ok: true, handle: this.#parts.handleOf(workflowId) };
      case 'exists':
        if (answer.name === name) return { ok: true, handle: this.#parts.handleOf(workflowId) };
        return {
          ok: false,
          error: new WorkflowIdConflictError(
            `Workflow ID "${workflowId}" belongs to a workflow named "${answer.name}", not "${name}". Choose another ID.`,
          ),
        };
      case 'debounced':
        return { ok: true, handle: this.#parts.handleOf(answer.workflowId) };
      case 'deduplicated':
        if (deduplication?.onConflict === 'attach') {
          return { ok: true, handle: this.#parts.handleOf(answer.holder) };
        }
        return { ok: false, error: enqueueRefusalError(answer) };
      case 'no-queue':
        return { ok: false, error: enqueueRefusalError(answer) };
      case 'refused':
        return {
          ok: false,
          error: new WriteRefusedError(`The database refuses to enqueue workflow "${workflowId}".`, {
            cause: answer.error,
          }),
        };
    }
  }
}

function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}
