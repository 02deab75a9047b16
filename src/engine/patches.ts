import { InvalidArgumentError } from '../errors/admin-errors.js';
import { WriteRefusedError } from '../errors/workflow-errors.js';
import type { RunningExecution } from './execution-host.js';

// Changes of code under workflows that are under way. A marker says that its workflow took the new path at that place; a record
// without one says that it took the old path, and is left as it is.
//
// Whether a place is new is read off the numbers. A marker takes the number of its call, and is recorded before anything that
// was called after it (an execution's writes are recorded in their order, and calls that wait for the end of a replay go on in
// theirs). So a record that goes beyond a number, and has no marker there, was made by code that did not ask.

const LONGEST_NAME_BYTES = 255;

/** Whether the workflow takes the new path here. Records that it does, when nothing from here on is recorded yet. */
export function patched(execution: RunningExecution, name: string): Promise<boolean> {
  checkPatchName(name);
  return execution.call(async () => {
    const { recorded, isNew } = execution.peek();
    if (recorded === undefined ? !isNew : recorded.kind !== 'patch' || recorded.name !== name) return false;
    const { seq } = execution.enter('patch', name);
    if (recorded === undefined) {
      const replaying = execution.replayOver();
      if (replaying !== undefined) await replaying;
      await recordMarker(execution, seq, name);
    } else {
      await execution.replayed(recorded);
    }
    return true;
  });
}

/** Passes over a marker that is recorded, and records none. */
export function deprecatePatch(execution: RunningExecution, name: string): Promise<void> {
  checkPatchName(name);
  return execution.call(async () => {
    const { recorded } = execution.peek();
    if (recorded?.kind !== 'patch' || recorded.name !== name) return;
    execution.enter('patch', name);
    await execution.replayed(recorded);
  });
}

async function recordMarker(execution: RunningExecution, seq: number, name: string): Promise<void> {
  const cause = await execution.checkpoint({
    seq,
    name,
    kind: 'patch',
    // Plain, whatever codec there is: an encoding that takes its time would let later calls be recorded first.
    output: 'true',
    error: null,
    attempts: 1,
    attemptErrors: null,
    childId: null,
    elapsedMs: 0,
  });
  if (cause === undefined) return;
  // What is called later must not be recorded without the marker.
  const error = new WriteRefusedError(`The database refuses the marker of patch "${name}".`, { cause });
  execution.block('WRITE_REFUSED', error.message, error);
  throw error;
}

function checkPatchName(name: unknown): void {
  const usable = typeof name === 'string' && name !== '' && Buffer.byteLength(name) <= LONGEST_NAME_BYTES;
  if (!usable || /\0|\p{Surrogate}/u.test(name)) {
    throw new InvalidArgumentError(`A patch needs a name of 1 to ${String(LONGEST_NAME_BYTES)} bytes.`);
  }
}
