import { copyFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { HoldfastClient } from '../../../src/index.js';
import { SeededRandom } from '../support/seeded-random.js';
import { Endpoint } from './endpoint.js';
import { ExecutorProcess } from './executor.js';
import { CREATE_EFFECTS, makeJourney } from './journey.js';
import { Ledger, type LedgerEvent, readLedger } from './ledger.js';
import type { FailoverOptions } from './options.js';
import { Pair } from './pair.js';
import { type Record, readRecord, untilAllEnded } from './record.js';
import { Traffic } from './traffic.js';
import { silentLogger } from '../support/silent-logger.js';

export const EXECUTOR_PROGRAM = new URL('./executor-process.ts', import.meta.url);

/** How long the load runs on before a primary is lost, in milliseconds. */
const LOAD_MS = { from: 1_000, to: 2_500 } as const;
/** How long the standby is deaf before. */
const DEAF_MS = { from: 0, to: 500 } as const;
/** How long the straggler is alone with the old primary, in leases: it has to be taken over from. */
const STRAGGLING_LEASES = { from: 2, to: 3 } as const;

/** Everything that the judges get to see. */
export interface Evidence {
  readonly options: FailoverOptions;
  readonly ledger: readonly LedgerEvent[];
  /** What the last primary has, after an immediate stop. */
  readonly record: Record;
}

export interface FailoverRun {
  /** The compiled executor. */
  readonly program: string;
  readonly options: FailoverOptions;
  readonly keep?: string | undefined;
  readonly progress?: (text: string) => void;
}

/** Runs the whole campaign. */
export async function runFailoverCampaign(run: FailoverRun): Promise<Evidence> {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-failover-'));
  const undo: (() => Promise<unknown>)[] = [() => rm(folder, { recursive: true, force: true })];
  const file = join(folder, 'ledger.jsonl');
  try {
    return await new Campaign(run, file, undo).play();
  } finally {
    if (run.keep !== undefined) await copyFile(file, run.keep);
    for (const step of undo.reverse()) await step();
  }
}

class Campaign {
  readonly #run: FailoverRun;
  readonly #file: string;
  readonly #ledger: Ledger;
  readonly #random: SeededRandom;
  /** What is to be done in the end, the last first. */
  readonly #undo: (() => Promise<unknown>)[];
  readonly #executors: ExecutorProcess[] = [];

  constructor(run: FailoverRun, file: string, undo: (() => Promise<unknown>)[]) {
    this.#run = run;
    this.#file = file;
    this.#ledger = new Ledger(file, 'campaign');
    this.#random = new SeededRandom(run.options.seed);
    this.#undo = undo;
  }

  async play(): Promise<Evidence> {
    const { options } = this.#run;
    let pair = await Pair.create(options);
    this.#undo.push(() => pair.close());
    this.#say('a primary and a standby run');
    await pair.primary.query(CREATE_EFFECTS);
    const endpoint = await this.#endpoint(pair);
    const client = await HoldfastClient.connect({
      database: endpoint.urlOf(pair.primary.url),
      migrate: true,
      logger: silentLogger,
    });
    this.#undo.push(() => client.close());
    for (let index = 0; index < options.executors; index++) await this.#launch(pair, index);
    const journey = makeJourney(this.#ledger);
    const traffic = new Traffic(client, journey, new Ledger(this.#file, 'client'), this.#executors, options.rate);
    this.#undo.push(() => traffic.calm());
    this.#say(`${String(options.executors)} executors run`);

    for (let round = 0; round < options.rounds; round++) pair = await this.#round(round, pair, endpoint);
    await pause(LOAD_MS.to);
    await traffic.calm();
    for (const executor of this.#executors) await executor.calm();
    this.#say('all are well again');
    await untilAllEnded(pair.primary, options.healMs);
    this.#say('all have ended');
    await this.#untilHeard();
    this.#say('all have heard');
    for (const executor of this.#executors) await executor.end();
    await pair.primary.restart('immediate');
    return { options, ledger: readLedger(this.#file), record: await readRecord(pair.primary) };
  }

  /** @returns the pair that is there afterwards */
  async #round(round: number, pair: Pair, client: Endpoint): Promise<Pair> {
    const { options } = this.#run;
    const kind = options.kinds[round % options.kinds.length] ?? 'kill';
    const straggler = this.#executors[round % this.#executors.length];
    if (straggler === undefined) throw new Error('A failover needs an executor.');
    await pause(this.#random.between(LOAD_MS.from, LOAD_MS.to));
    this.#say(`round ${String(round)}: ${kind}, the straggler is ${straggler.name}`);
    this.#ledger.tell({ what: 'lost', kind, straggler: straggler.name });
    await pair.failOver(kind, this.#random.between(DEAF_MS.from, DEAF_MS.to));
    this.#ledger.tell({ what: 'promoted' });
    const others = this.#executors.filter((executor) => executor !== straggler).map((executor) => executor.endpoint);
    for (const endpoint of [client, ...others]) {
      endpoint.route(pair.standby.port);
      endpoint.cut();
    }
    if (kind === 'mixed') straggler.endpoint.route(pair.standby.port);
    await pair.primary.start();
    this.#ledger.tell({ what: 'back', unacknowledged: await unacknowledged(pair) });
    await pause(options.leaseMs * this.#random.between(STRAGGLING_LEASES.from, STRAGGLING_LEASES.to));
    straggler.endpoint.route(pair.standby.port);
    straggler.endpoint.cut();
    this.#ledger.tell({ what: 'rejoined' });
    await pair.primary.close();
    return pair.next(`standby_${String(round + 1)}`, options);
  }

  async #launch(pair: Pair, index: number): Promise<void> {
    const { program, options } = this.#run;
    const endpoint = await this.#endpoint(pair);
    const executor = await ExecutorProcess.launch(program, endpoint, {
      database: endpoint.urlOf(pair.primary.url),
      library: index % 2 === 0 ? 'pg' : 'postgres',
      executorId: `executor ${String(index)}`,
      leaseMs: options.leaseMs,
      ledger: this.#file,
      startEveryMs: 3_000 / options.rate,
    });
    this.#undo.push(() => executor.end());
    this.#executors.push(executor);
  }

  async #endpoint(pair: Pair): Promise<Endpoint> {
    const endpoint = await Endpoint.open(pair.primary.port);
    this.#undo.push(() => endpoint.close());
    return endpoint;
  }

  /** Until everybody who asked has heard the outcome of everything; a moment later what should not come would have come, too. */
  async #untilHeard(): Promise<void> {
    const { healMs, executors } = this.#run.options;
    const deadline = performance.now() + healMs;
    while (performance.now() < deadline) {
      const events = readLedger(this.#file);
      const started = events.filter(({ what }) => what === 'started');
      const asked = started.reduce((sum, { who }) => sum + (who === 'client' ? executors + 1 : 1), 0);
      const heard = events.filter(({ what }) => what === 'outcome' || what === 'wrong').length;
      if (heard >= asked) break;
      await pause(200);
    }
  }

  #say(text: string): void {
    this.#run.progress?.(text);
  }
}

/** Effects that only the old primary has: what was committed there while the standby was deaf. */
async function unacknowledged({ primary, standby }: Pair): Promise<number> {
  const rows = async (server: typeof primary): Promise<Set<string>> =>
    new Set((await server.query<{ run: string }>('SELECT run FROM effect')).map(({ run }) => run));
  const [old, current] = [await rows(primary), await rows(standby)];
  return [...old].filter((run) => !current.has(run)).length;
}
