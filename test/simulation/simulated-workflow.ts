import {
  workflowDefinition,
  stepDefinition,
  type StepDefinition,
  type WorkflowDefinition,
} from '../../src/engine/definitions.js';
import { awaitOutcome, callChild, durableSleep, recordValue } from '../../src/engine/durable-calls.js';
import { readEvent, receiveMessage, recordEvent, sendMessage } from '../../src/engine/durable-messages.js';
import type { RunningExecution } from '../../src/engine/execution-host.js';
import type { RunningAttempt } from '../../src/engine/running-attempt.js';
import { currentScope, requireDurable } from '../../src/engine/scope.js';
import { sleep } from '../../src/engine/timer.js';
import type { Reconciliation } from '../../src/api/reconciliation.js';
import { codeOf } from '../../src/errors/error-code.js';
import type { Call, Program } from './scenario.js';
import type { ProcessParts } from './simulated-process.js';

/** What a simulated workflow's body throws. Not an error of the library. */
export class SimulatedError extends Error {
  override readonly name = 'SimulatedError';
}

export function workflowIdOf(index: number): string {
  return `w${String(index)}`;
}

/** A workflow that does what its input says, and returns what it got. */
export function simulatedWorkflow(parts: ProcessParts): WorkflowDefinition {
  const steps = { step: simulatedStep(parts), undoable: undoableStep(parts) };
  const definition: WorkflowDefinition = workflowDefinition(
    'simulated',
    async (program: unknown, mayWait: unknown) => {
      const execution = requireDurable('A simulated workflow');
      const run = new SimulatedRun(parts, execution, definition, { ...steps, mayWait: mayWait === true });
      const got = await run.program(program as Program);
      return { got, by: signatureOf(execution) };
    },
    {},
  );
  return definition;
}

/** Goes into every outcome, so that it shows which execution made it. */
function signatureOf({ workflowId, ownership }: RunningExecution): string {
  return `made by ${ownership.token} for ${workflowId};`;
}

interface Means {
  readonly step: StepDefinition;
  readonly undoable: StepDefinition;
  readonly mayWait: boolean;
}

class SimulatedRun {
  readonly #parts: ProcessParts;
  readonly #execution: RunningExecution;
  readonly #definition: WorkflowDefinition;
  readonly #how: Means;
  #sent = 0;

  constructor(parts: ProcessParts, execution: RunningExecution, definition: WorkflowDefinition, how: Means) {
    this.#parts = parts;
    this.#execution = execution;
    this.#definition = definition;
    this.#how = how;
  }

  async program(program: Program): Promise<unknown[]> {
    const got: unknown[] = [];
    for (const call of program) got.push(await this.#call(call));
    return got;
  }

  async #call(call: Call): Promise<unknown> {
    const execution = this.#execution;
    switch (call.do) {
      case 'step': {
        const value = (await execution.runStep(this.#how.step, undefined, [call.ms, call.fails])) as string;
        this.#parts.ledger.handed(execution.workflowId, execution.ownership.token, value);
        return value;
      }
      case 'all':
        return Promise.all(call.branches.map((branch) => this.program(branch)));
      case 'child':
        return callChild(execution, this.#definition, [call.program, this.#how.mayWait], {});
      case 'sleep':
        await durableSleep(execution, { ms: call.ms });
        return 'slept';
      case 'receive':
        return (await receiveMessage(execution, call.topic, call.ms)) ?? 'nothing';
      case 'send':
        return this.#send(workflowIdOf(call.to), call.topic);
      case 'undoable':
        return execution.runStep(this.#how.undoable, undefined, [call.ms]);
      case 'outcome':
        return this.#outcomeOf(call.of);
      case 'read':
        return this.#read(call.of, call.ms);
      case 'event':
        await recordEvent(execution, 'event', execution.ownership.epoch);
        return 'set';
      case 'value':
        return recordValue(execution, 'value', () => this.#parts.runtime.randomUuid());
      case 'ignore':
        try {
          return await this.program(call.program);
        } catch (error) {
          return codeOf(error) ?? 'failed';
        }
      case 'fail':
        throw new SimulatedError(`failed, ${signatureOf(execution)}`);
    }
  }

  /** Of a workflow that is to wait for another one in a queue of one slot, both may be in it. */
  async #outcomeOf(index: number): Promise<unknown> {
    const own = Number(/^w(\d+)/.exec(this.#execution.workflowId)?.[1]);
    if (index <= own || !this.#how.mayWait) return 'not asked';
    return this.#unless(awaitOutcome(this.#execution, workflowIdOf(index)));
  }

  #read(index: number, ms: number): Promise<unknown> {
    return this.#unless(readEvent(this.#execution, { workflowId: workflowIdOf(index), key: 'event' }, ms));
  }

  /** What is thrown is recorded, so replays see the same. */
  async #unless(called: Promise<unknown>): Promise<unknown> {
    try {
      return (await called) ?? 'nothing';
    } catch (error) {
      this.#execution.assertRunning();
      return codeOf(error) ?? 'failed';
    }
  }

  /** Refusals are recorded, so replays see the same. */
  async #send(receiver: string, topic: string): Promise<unknown> {
    const { workflowId, ownership } = this.#execution;
    const message = { from: `${workflowId} ${ownership.token}`, number: this.#sent++ };
    try {
      await sendMessage(this.#execution, receiver, topic, message, {});
      return 'sent';
    } catch (error) {
      const code = codeOf(error);
      if (code !== 'WORKFLOW_NOT_FOUND' && code !== 'RECEIVER_ENDED') throw error;
      return code;
    }
  }
}

function simulatedStep(parts: ProcessParts): StepDefinition {
  const { ledger, actor } = parts;
  const takesTime = timeOf(parts);
  const body = async (ms: unknown, fails: unknown): Promise<string> => {
    const { step, execution } = scopeOfBody();
    const { seq, attempt } = step;
    const { workflowId, ownership } = execution;
    const { token } = ownership;
    const id = ledger.begin(actor, { workflowId, seq, token, attempt });
    await takesTime(ms);
    if (attempt <= Number(fails)) {
      ledger.failed(token, seq);
      throw new SimulatedError(`failed: ${id}`);
    }
    return id;
  };
  return stepDefinition('step', body, { retries: { maxAttempts: 3, initialDelay: 20, jitter: true } });
}

/** Has its effect at once, and takes it back when the workflow is rolled back. What became of an interrupted one can be found out. */
function undoableStep(parts: ProcessParts): StepDefinition {
  const { ledger, actor } = parts;
  const takesTime = timeOf(parts);
  const body = async (ms: unknown): Promise<string> => {
    const { step, execution } = scopeOfBody();
    const { workflowId, ownership } = execution;
    const { seq, attempt } = step;
    const id = ledger.begin(actor, { workflowId, seq, token: ownership.token, attempt });
    ledger.takesEffect(workflowId, seq, id);
    await takesTime(ms);
    return id;
  };
  const reconcile = (): Promise<Reconciliation> => {
    const { step, execution } = scopeOfBody();
    const result = ledger.effectOf(execution.workflowId, step.seq);
    return Promise.resolve(result === undefined ? { didNotHappen: true } : { happened: true, result });
  };
  const compensate = async (result: unknown, ms: unknown): Promise<void> => {
    await takesTime(ms);
    ledger.undoes(scopeOfBody().execution.workflowId, String(result));
  };
  return stepDefinition('undoable', body, { reconcile, compensate });
}

function timeOf({ runtime, actor }: ProcessParts): (ms: unknown) => Promise<void> {
  return async (ms) => {
    if (Number(ms) <= 0) return;
    actor.openBodies += 1;
    await sleep(runtime, Number(ms));
    actor.openBodies -= 1;
  };
}

function scopeOfBody(): { readonly step: RunningAttempt; readonly execution: RunningExecution } {
  const scope = currentScope();
  if (scope?.step === undefined) throw new TypeError('A body has a step.');
  return { step: scope.step, execution: scope.execution };
}
