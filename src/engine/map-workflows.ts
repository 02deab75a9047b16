import type { MapOptions, MapResult } from '../api/map.js';
import { InvalidArgumentError, WorkflowNotFoundError } from '../errors/admin-errors.js';
import { MapFailedError, MapInputSkippedError } from '../errors/map-errors.js';
import { WorkflowNotRegisteredError } from '../errors/usage-errors.js';
import { wholeNumber } from './whole-number.js';
import { stepDefinition, workflowDefinitionOf, type WorkflowDefinition } from './definitions.js';
import { awaitOutcome, startChildHandle } from './durable-calls.js';
import { enqueueChild } from './durable-enqueue.js';
import type { RunningExecution } from './execution-host.js';
import { checkKnownOptions } from './known-options.js';
import { checkQueueName } from './prepare-enqueue.js';
import { requireDurable } from './scope.js';
import { quietly } from './quietly.js';

/** Each child is two durable calls, and one run of a workflow can make 20,000. */
export const MAX_MAP_INPUTS = 9_000;
const MAX_CONCURRENCY = 1_000;

const OPTIONS: ReadonlySet<string> = new Set<keyof MapOptions>([
  'concurrency',
  'queue',
  'key',
  'minSuccessful',
  'toleratedFailures',
]);
const CANCEL_RETRIES = { maxAttempts: 5 } as const;

/**
 * Runs a child workflow for each input, at most `concurrency` of them at once, and returns what came of each, in the order of
 * the inputs. It ends early when `minSuccessful` is reached or `toleratedFailures` is exceeded: the children that are under way
 * are cancelled then, and waited for. After a crash it goes on where it was: no child is started twice.
 *
 * Its calls are numbered like all durable calls. To change inputs or concurrency while workflows are in the middle of it, use
 * `patched`.
 *
 * @example
 * const results = await mapWorkflows(sendInvoice, tenants, { concurrency: 20, toleratedFailures: 5 });
 * const failed = results.filter((result) => !result.ok);
 *
 * @throws MapFailedError with all results, when more have failed than is tolerated, or too few can still succeed.
 * @throws InvalidArgumentError, WorkflowNotRegisteredError, OutsideWorkflowError before anything is recorded.
 */
export function mapWorkflows<Input, Result>(
  workflow: (input: Input) => Promise<Result>,
  inputs: readonly Input[],
  options: MapOptions,
): Promise<MapResult<Result>[]> {
  return quietly(async () => {
    const execution = requireDurable('mapWorkflows');
    const definition = workflowDefinitionOf(workflow);
    if (definition === undefined) {
      throw new WorkflowNotRegisteredError(
        'This function is not a workflow. Decorate the method with @Workflow, or wrap the function with defineWorkflow.',
      );
    }
    if (!Array.isArray(inputs) || inputs.length > MAX_MAP_INPUTS) {
      throw new InvalidArgumentError(`mapWorkflows takes an array of at most ${String(MAX_MAP_INPUTS)} inputs.`);
    }
    const results = await new WorkflowMap(execution, definition, inputs, checkOptions(options, inputs.length)).run();
    return results as MapResult<Result>[];
  });
}

type Settings = Required<Pick<MapOptions, 'concurrency' | 'minSuccessful' | 'toleratedFailures'>> &
  Pick<MapOptions, 'queue' | 'key'>;

function checkOptions(options: MapOptions, count: number): Settings {
  checkKnownOptions(options, OPTIONS, 'mapWorkflows');
  const { concurrency, queue, key, minSuccessful, toleratedFailures } = options;
  if (queue !== undefined) checkQueueName(queue);
  if (key !== undefined && queue === undefined) {
    throw new InvalidArgumentError('key means something in a queue only: name one with the option "queue".');
  }
  return {
    concurrency: wholeNumber(concurrency, 1, MAX_CONCURRENCY, 'concurrency'),
    minSuccessful: minSuccessful === undefined ? Infinity : wholeNumber(minSuccessful, 0, count, 'minSuccessful'),
    toleratedFailures:
      toleratedFailures === undefined
        ? Infinity
        : wholeNumber(toleratedFailures, 0, MAX_MAP_INPUTS, 'toleratedFailures'),
    ...(queue === undefined ? {} : { queue }),
    ...(key === undefined ? {} : { key }),
  };
}

/**
 * One map under way. Every decision follows from recorded results in the order in which they were recorded, which is the
 * order in which a replay hands them out: so the same children are started, and the same ones cancelled, at every run.
 */
class WorkflowMap {
  readonly #execution: RunningExecution;
  readonly #definition: WorkflowDefinition;
  readonly #inputs: readonly unknown[];
  readonly #settings: Settings;
  readonly #results: (MapResult<unknown> | undefined)[];
  /** Children under way. */
  readonly #open = new Set<string>();
  #next = 0;
  #successes = 0;
  #failures = 0;
  #firstFailure: unknown;
  #end: 'successful' | 'failed' | undefined;

  constructor(
    execution: RunningExecution,
    definition: WorkflowDefinition,
    inputs: readonly unknown[],
    settings: Settings,
  ) {
    this.#execution = execution;
    this.#definition = definition;
    this.#inputs = inputs;
    this.#settings = settings;
    this.#results = new Array<undefined>(inputs.length);
  }

  async run(): Promise<MapResult<unknown>[]> {
    this.#decide();
    const lanes = Math.min(this.#settings.concurrency, this.#inputs.length);
    await Promise.all(Array.from({ length: lanes }, () => this.#lane()));
    const results = Array.from(this.#results, (result): MapResult<unknown> => result ?? skipped());
    if (this.#end === 'failed') {
      throw new MapFailedError(
        `${String(this.#failures)} of ${String(this.#inputs.length)} children of mapWorkflows("${this.#definition.name}") have failed. The others were cancelled, or not started.`,
        { results },
        { cause: this.#firstFailure },
      );
    }
    return results;
  }

  async #lane(): Promise<void> {
    while (!this.#isOver() && this.#next < this.#inputs.length) {
      const index = this.#next++;
      const result = await this.#runChild(this.#inputs[index]);
      this.#results[index] = result;
      if (this.#isOver()) continue;
      if (result.ok) this.#successes += 1;
      else if (this.#failures++ === 0) this.#firstFailure = result.error;
      this.#decide();
      if (this.#isOver() && this.#open.size > 0) await this.#cancel([...this.#open]);
    }
  }

  #isOver(): boolean {
    return this.#end !== undefined;
  }

  #decide(): void {
    const { minSuccessful, toleratedFailures } = this.#settings;
    const canSucceed = this.#inputs.length - this.#failures;
    if (this.#successes >= minSuccessful) this.#end = 'successful';
    else if (this.#failures > toleratedFailures) this.#end = 'failed';
    else if (minSuccessful !== Infinity && canSucceed < minSuccessful) this.#end = 'failed';
  }

  async #runChild(input: unknown): Promise<MapResult<unknown>> {
    try {
      const { workflowId } = await this.#start(input);
      this.#open.add(workflowId);
      try {
        // It was being started while the map ended.
        if (this.#isOver()) await this.#cancel([workflowId]);
        return { ok: true, value: await awaitOutcome(this.#execution, workflowId) };
      } finally {
        this.#open.delete(workflowId);
      }
    } catch (error) {
      // The end of the execution is no child's failure.
      this.#execution.assertRunning();
      return { ok: false, error };
    }
  }

  #start(input: unknown): Promise<{ readonly workflowId: string }> {
    const { queue, key } = this.#settings;
    if (queue === undefined) return startChildHandle(this.#execution, this.#definition, [input], {});
    return enqueueChild(this.#execution, this.#definition, [input], { queue, ...(key === undefined ? {} : { key }) });
  }

  /** Recorded, so that a replay does not cancel a child again that somebody has resumed since. */
  async #cancel(workflowIds: readonly string[]): Promise<void> {
    const { host } = this.#execution;
    const cancelAll = async (): Promise<void> => {
      await Promise.all(
        workflowIds.map(async (workflowId) => {
          try {
            await host.handleOf(workflowId).cancel({ reason: 'mapWorkflows needs it no more' });
          } catch (error) {
            if (!(error instanceof WorkflowNotFoundError)) throw error;
          }
        }),
      );
    };
    const definition = stepDefinition('mapWorkflows.cancel', cancelAll, { retries: CANCEL_RETRIES });
    await this.#execution.runStep(definition, undefined, []);
  }
}

function skipped(): MapResult<unknown> {
  return { ok: false, error: new MapInputSkippedError('The map was over before it came to this input.') };
}
