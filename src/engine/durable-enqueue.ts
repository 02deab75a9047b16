import type { EnqueueResult } from '../api/enqueue-result.js';
import type { EnqueueItem, EnqueueOptions } from '../api/queue.js';
import type { WorkflowHandle } from '../api/workflow-handle.js';
import { InvalidArgumentError } from '../errors/admin-errors.js';
import { WorkflowIdConflictError, WriteRefusedError } from '../errors/workflow-errors.js';
import { childIdOf } from './child-id.js';
import type { WorkflowDefinition } from './definitions.js';
import { orRecordFailure } from './durable-calls.js';
import { checkIsList, checkItem } from './enqueue-items.js';
import { enqueueRefusalError } from './enqueue-refusal.js';
import type { RunningExecution } from './execution-host.js';
import { prepareEnqueue, startOptionsOf } from './prepare-enqueue.js';

/**
 * Enqueues a child and returns its handle: what `enqueue` inside a workflow does. What was recorded stands, also that it was
 * refused: a replay does not ask again, whatever has become of the queue.
 */
export function enqueueChild(
  execution: RunningExecution,
  definition: WorkflowDefinition,
  args: readonly unknown[],
  options: EnqueueOptions,
): Promise<WorkflowHandle> {
  return execution.call(async () => {
    const { seq, recorded } = execution.enter('enqueue', definition.name);
    if (recorded !== undefined) {
      // Throws where it was refused; returns nothing where it was not, since the intent has no result.
      await execution.replayed(recorded);
      return execution.host.handleOf(recorded.childId ?? '');
    }
    await execution.replayOver();
    const step = {
      seq,
      name: definition.name,
      kind: 'enqueue',
      childId: null,
      startedAt: execution.runtime.now(),
    } as const;
    const childId = await orRecordFailure(execution, step, () => enqueueAt(execution, seq, definition, args, options));
    return execution.host.handleOf(childId);
  });
}

/** Each as `enqueueChild`, and none is kept back by another's refusal. */
export function enqueueChildren(
  execution: RunningExecution,
  definition: WorkflowDefinition,
  options: EnqueueOptions,
  items: readonly EnqueueItem<unknown[]>[],
): Promise<readonly EnqueueResult<unknown>[]> {
  checkIsList(items);
  return Promise.all(
    Array.from(items, async (item): Promise<EnqueueResult<unknown>> => {
      try {
        const { args, ...own } = checkItem(item);
        return { ok: true, handle: await enqueueChild(execution, definition, args, { ...options, ...own }) };
      } catch (error) {
        execution.assertRunning();
        return { ok: false, error: error instanceof Error ? error : new Error(String(error)) };
      }
    }),
  );
}

async function enqueueAt(
  execution: RunningExecution,
  seq: number,
  definition: WorkflowDefinition,
  args: readonly unknown[],
  options: EnqueueOptions,
): Promise<string> {
  const { host, ownership } = execution;
  if (options.transaction !== undefined) {
    throw new InvalidArgumentError(
      "Inside a workflow, enqueue commits with the workflow's own record: leave out the transaction.",
    );
  }
  const childId = options.workflowId ?? childIdOf(ownership, seq);
  const start = await host.prepare(definition, args, startOptionsOf(options), childId);
  const child = {
    ...(await prepareEnqueue(start, options.queue, options, host.serializer)),
    onParentCancel: options.onParentCancel ?? 'cancel',
  };
  const answer = await execution.write(host.store.recordEnqueue(ownership, { seq, name: definition.name, child }));
  switch (answer.kind) {
    case 'written':
      await execution.progress();
      return answer.childId;
    case 'child-name-taken':
      throw new WorkflowIdConflictError(
        `Workflow ID "${childId}" belongs to a workflow named "${answer.name}", not "${definition.name}". Choose another ID.`,
      );
    case 'no-queue':
    case 'deduplicated':
      throw enqueueRefusalError(answer);
    case 'refused':
      throw new WriteRefusedError('The database refuses what the workflow wants to enqueue.', { cause: answer.error });
    default:
      return execution.denied(answer);
  }
}
