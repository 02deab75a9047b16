import type { EnqueueOptions } from '../api/queue.js';
import type { WorkflowHandle } from '../api/workflow-handle.js';
import { InvalidArgumentError } from '../errors/admin-errors.js';
import type { HoldfastError } from '../errors/holdfast-error.js';
import { WorkflowIdConflictError, WriteRefusedError } from '../errors/workflow-errors.js';
import type { WorkflowDefinition } from './definitions.js';
import { enqueueRefusalError } from './enqueue-refusal.js';
import type { RunningExecution } from './execution-host.js';
import { prepareEnqueue } from './prepare-enqueue.js';

/**
 * Enqueues a child and returns its handle: what `enqueue` inside a workflow does. What was recorded stands, also that it was
 * refused: a replay does not ask again, whatever has become of the queue.
 */
export function enqueueChild(
  execution: RunningExecution,
  definition: WorkflowDefinition,
  args: readonly unknown[],
  options: EnqueueOptions,
): Promise<WorkflowHandle<unknown>> {
  return execution.call(async () => {
    const { host, ownership } = execution;
    const { seq, recorded } = execution.enter('enqueue', definition.name);
    if (recorded?.complete === true) await execution.replayed(recorded);
    if (recorded?.childId !== null && recorded?.childId !== undefined) {
      await execution.replayedStart(recorded);
      return host.handleOf(recorded.childId);
    }
    await execution.replayOver();
    if (options.transaction !== undefined) {
      throw new InvalidArgumentError(
        "Inside a workflow, enqueue commits with the workflow's own record: leave out the transaction.",
      );
    }
    // As for children: the epoch keeps the one of a rewound parent apart from the one before.
    const childId = options.workflowId ?? `${ownership.workflowId}.${String(seq)}.${String(ownership.epoch)}`;
    const start = await host.prepare(definition, args, options, childId);
    const child = {
      ...prepareEnqueue(start, options.queue, options),
      onParentCancel: options.onParentCancel ?? 'cancel',
    };
    const answer = await execution.write(host.store.recordEnqueue(ownership, { seq, name: definition.name, child }));
    switch (answer.kind) {
      case 'written':
        await execution.progress();
        return host.handleOf(answer.childId);
      case 'child-name-taken':
        throw new WorkflowIdConflictError(
          `Workflow ID "${childId}" belongs to a workflow named "${answer.name}", not "${definition.name}". Choose another ID.`,
        );
      case 'no-queue':
      case 'deduplicated':
        return await recordRefusal(execution, seq, definition.name, enqueueRefusalError(answer));
      case 'refused':
        throw new WriteRefusedError('The database refuses what the workflow wants to enqueue.', {
          cause: answer.error,
        });
      default:
        return execution.denied(answer);
    }
  });
}

async function recordRefusal(
  execution: RunningExecution,
  seq: number,
  name: string,
  error: HoldfastError,
): Promise<never> {
  const refused = await execution.checkpoint({
    seq,
    name,
    kind: 'enqueue',
    output: null,
    error: await execution.host.serializer.encodeError(error),
    attempts: 1,
    attemptErrors: null,
    childId: null,
    elapsedMs: 0,
  });
  if (refused !== undefined) {
    throw new WriteRefusedError(`The database refuses the result of enqueue "${name}".`, { cause: refused });
  }
  throw error;
}
