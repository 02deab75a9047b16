import {
  workflowDefinition,
  stepDefinition,
  type StepDefinition,
  type WorkflowDefinition,
} from '../../src/engine/definitions.js';
import { callChild, durableSleep, recordValue } from '../../src/engine/durable-calls.js';
import { receiveMessage, recordEvent, sendMessage } from '../../src/engine/durable-messages.js';
import type { RunningExecution } from '../../src/engine/execution-host.js';
import { currentScope, requireDurable } from '../../src/engine/scope.js';
import { sleep } from '../../src/engine/timer.js';
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
  const step = simulatedStep(parts);
  const definition: WorkflowDefinition = workflowDefinition(
    'simulated',
    async (program: unknown) => {
      const execution = requireDurable('A simulated workflow');
      const run = new SimulatedRun(parts, execution, definition, step);
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

class SimulatedRun {
  readonly #parts: ProcessParts;
  readonly #execution: RunningExecution;
  readonly #definition: WorkflowDefinition;
  readonly #step: StepDefinition;
  #sent = 0;

  constructor(parts: ProcessParts, execution: RunningExecution, definition: WorkflowDefinition, step: StepDefinition) {
    this.#parts = parts;
    this.#execution = execution;
    this.#definition = definition;
    this.#step = step;
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
        const value = (await execution.runStep(this.#step, undefined, [call.ms, call.fails])) as string;
        this.#parts.ledger.handed(execution.workflowId, execution.ownership.token, value);
        return value;
      }
      case 'all':
        return Promise.all(call.branches.map((branch) => this.program(branch)));
      case 'child':
        return callChild(execution, this.#definition, [call.program], {});
      case 'sleep':
        await durableSleep(execution, { ms: call.ms });
        return 'slept';
      case 'receive':
        return (await receiveMessage(execution, call.topic, call.ms)) ?? 'nothing';
      case 'send':
        return this.#send(workflowIdOf(call.to), call.topic);
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

function simulatedStep({ ledger, runtime, actor }: ProcessParts): StepDefinition {
  const body = async (ms: unknown, fails: unknown): Promise<string> => {
    const scope = currentScope();
    if (scope?.step === undefined) throw new TypeError('A body has a step.');
    const { seq, attempt } = scope.step;
    const { workflowId, ownership } = scope.execution;
    const { token } = ownership;
    const id = ledger.begin(actor, { workflowId, seq, token, attempt });
    if (Number(ms) > 0) await sleep(runtime, Number(ms));
    if (attempt <= Number(fails)) {
      ledger.failed(token, seq);
      throw new SimulatedError(`failed: ${id}`);
    }
    return id;
  };
  return stepDefinition('step', body, { retries: { maxAttempts: 3, initialDelay: 20, jitter: true } });
}
