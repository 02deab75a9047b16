import { cpus } from 'node:os';

import type { Latency, LoadOrder, Work } from './protocol.js';
import type { Scenario } from './scenarios.js';
import type { ServerUsage, ServerUsageReader } from './server-usage.js';
import type { SideName } from './sides.js';
import type { WorkerProcess } from './worker-process.js';

/** One window of one side. Per-workflow figures are per `steps` steps, so that a window that ends amid workflows is exact. */
export interface Measurement {
  readonly side: SideName;
  readonly work: Work;
  readonly scenario: string;
  readonly round: number;
  readonly seconds: number;
  readonly stepsPerSecond: number;
  readonly workflowsPerSecond: number;
  readonly latencyMs: Latency | null;
  readonly startDelayMs: Latency | null;
  readonly clientCpuMsPerWorkflow: number;
  readonly serverCpuMsPerWorkflow: number | null;
  readonly walBytesPerStep: number;
  /** Share of the machine's CPU time that neither the client nor the server used; `null` when the server is elsewhere. */
  readonly foreignCpuShare: number | null;
}

/** Where and when to measure what. */
export interface MeasurementPlan {
  readonly side: SideName;
  readonly work: Work;
  readonly scenario: Scenario;
  readonly round: number;
  readonly warmUpMs: number;
  readonly measureMs: number;
}

/** Lets one side work, with every other one idle. */
export async function measure(
  worker: WorkerProcess,
  usage: ServerUsageReader,
  plan: MeasurementPlan,
): Promise<Measurement> {
  const { scenario } = plan;
  const order: LoadOrder = {
    work: plan.work,
    steps: scenario.steps,
    concurrency: scenario.concurrency,
    warmUpMs: plan.warmUpMs,
    measureMs: plan.measureMs,
    queue: scenario.queue,
  };
  const readings: ServerUsage[] = [];
  const result = await worker.run(order, async () => {
    readings.push(await usage.read());
  });
  const [before, after] = readings;
  if (before === undefined || after === undefined) throw new Error('A window has two ends.');
  if (result.steps === 0) throw new Error(`${plan.side} completed no step in ${scenario.name}.`);

  const seconds = result.elapsedMs / 1000;
  const workflows = result.steps / scenario.steps;
  const serverCpuMs = before.cpuMs === null || after.cpuMs === null ? null : after.cpuMs - before.cpuMs;
  const machineCpuMs = after.machineCpuMs - before.machineCpuMs;
  return {
    side: plan.side,
    work: plan.work,
    scenario: scenario.name,
    round: plan.round,
    seconds,
    stepsPerSecond: result.steps / seconds,
    workflowsPerSecond: result.workflows / seconds,
    latencyMs: result.latencyMs,
    startDelayMs: result.startDelayMs,
    clientCpuMsPerWorkflow: result.cpuMs / workflows,
    serverCpuMsPerWorkflow: serverCpuMs === null ? null : serverCpuMs / workflows,
    walBytesPerStep: (after.walBytes - before.walBytes) / result.steps,
    foreignCpuShare:
      serverCpuMs === null
        ? null
        : Math.max(0, machineCpuMs - serverCpuMs - result.cpuMs) / (result.elapsedMs * cpus().length),
  };
}
