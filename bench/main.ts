import { mkdirSync, writeFileSync } from 'node:fs';

import pg from 'pg';

import { Cleanup } from './cleanup.js';
import { describeMachine } from './environment.js';
import { measure, type Measurement } from './measure.js';
import { type BenchOptions, parseOptions, USAGE } from './options.js';
import { renderReport } from './report.js';
import { SCENARIOS } from './scenarios.js';
import { assertDurable, createDatabase, openServer } from './server.js';
import { ServerUsageReader } from './server-usage.js';
import { PROGRAMS, SIDE_NAMES, type SideName, worksOf } from './sides.js';
import { compare, summarise } from './summary.js';
import { WorkerProcess } from './worker-process.js';

/** Long enough for plans, buffers, JIT and, at 500 workflows, the first wave. Not measured. */
const WARM_UP_MS = 3_000;

const RESULTS_DIR = new URL('./results/', import.meta.url);

const options = parseOptions(process.argv.slice(2));
if (options === undefined) console.log(USAGE);
else {
  const cleanup = new Cleanup();
  try {
    await main(options, cleanup);
  } finally {
    await cleanup.run();
  }
}

async function main(options: BenchOptions, cleanup: Cleanup): Promise<void> {
  const server = await openServer(process.env);
  cleanup.add(() => server.stop());
  const client = new pg.Client({ connectionString: server.url });
  await client.connect();
  cleanup.add(() => client.end());
  const settings = await assertDurable(client);
  const usage = await ServerUsageReader.create(client);
  progress(`${server.source}, ${settings['server_version'] ?? ''}, fsync and synchronous_commit on`);

  const workers = new Map<SideName, WorkerProcess>();
  for (const side of options.sides) {
    const database = await createDatabase(client, server.url, side);
    cleanup.add(() => database.drop());
    const worker = await WorkerProcess.start(PROGRAMS[side], {
      BENCH_WORKER_DATABASE_URL: database.url,
      BENCH_DBOS_POOL_SIZE: String(options.dbosPoolSize),
    });
    cleanup.add(() => worker.stop());
    workers.set(side, worker);
    progress(`${side}: ${worker.about}`);
  }

  const measurements = await measureAll(options, workers, usage);
  const summaries = summarise(measurements);
  const comparisons = compare(options.scenarios, measurements);
  console.log(renderReport(options.scenarios, summaries, comparisons));
  const results = {
    takenAt: new Date().toISOString(),
    machine: describeMachine(),
    server: { source: server.source, settings },
    sides: Object.fromEntries([...workers].map(([side, worker]) => [side, worker.about])),
    secondsPerWindow: options.seconds,
    rounds: options.rounds,
    comparisons,
    summaries,
    measurements,
  };
  // A partial run must not replace the results of a whole one.
  const whole = options.sides.length === SIDE_NAMES.length && options.scenarios.length === SCENARIOS.length;
  mkdirSync(RESULTS_DIR, { recursive: true });
  const file = new URL(whole ? 'latest.json' : 'partial.tmp.json', RESULTS_DIR);
  writeFileSync(file, `${JSON.stringify(results, undefined, 2)}\n`);
}

/** Scenario by scenario, and within it round by round, all sides in turn: A B, A B, A B … */
async function measureAll(
  options: BenchOptions,
  workers: ReadonlyMap<SideName, WorkerProcess>,
  usage: ServerUsageReader,
): Promise<readonly Measurement[]> {
  const measurements: Measurement[] = [];
  for (const scenario of options.scenarios) {
    for (let round = 1; round <= options.rounds; round++) {
      for (const [side, worker] of workers) {
        for (const work of worksOf(side, scenario)) {
          const measurement = await measure(worker, usage, {
            side,
            work,
            scenario,
            round,
            warmUpMs: WARM_UP_MS,
            measureMs: options.seconds * scenario.windows * 1000,
          });
          measurements.push(measurement);
          progress(
            `${scenario.name} ${String(round)}: ${side} ${work} ${measurement.stepsPerSecond.toFixed(0)} steps/s`,
          );
        }
      }
    }
  }
  return measurements;
}

/** On stderr: stdout holds the tables alone. */
function progress(text: string): void {
  console.error(text);
}
