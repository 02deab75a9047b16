import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { HoldfastClient } from '../../../src/index.js';
import { bundle, type Bundle } from '../../support/bundle.js';
import { OwnServer } from '../support/own-server.js';
import { NoSmallDiskError, releaseAsked } from '../support/own-server-place.js';
import { SeededRandom } from '../support/seeded-random.js';
import { sumUp } from '../support/verdict.js';
import { PatientSql, pauseUntil } from './arena.js';
import { installAudit } from './audit.js';
import { documentedCodes } from './documented-codes.js';
import { Crew, type CrewOptions, later } from './crew.js';
import type { Fault } from './fault.js';
import { forgetJudged } from './forget-judged.js';
import { judgeApart } from './judge-apart.js';
import { LedgerProcess } from './ledger/ledger.js';
import { Member } from './member.js';
import { applyMutant, type Mutant } from './mutants.js';
import type { ChaosOptions } from './options.js';
import { joinParts, type PartFindings } from './parts.js';
import { disturb } from './turns.js';
import { MIXED, type Traffic } from './traffic.js';
import { silentLogger } from '../support/silent-logger.js';

const MAX_CONNECTIONS = 8;
const BODY_MS = 5;
const TRANSACTION_MS = 10;
const POLL_MS = 100;
/** Whoever is told late has until then: every handle asks by itself again. */
const QUIET_MS = 1_000;

/** Name of the campaign's database. */
const DATABASE = 'chaos';

/** The programs of the campaign, compiled. */
export interface Programs {
  readonly worker: string;
  readonly client: string;
  readonly ledger: string;
  readonly judge: string;
  remove(): Promise<void>;
}

export async function compilePrograms(): Promise<Programs> {
  const bundles: Bundle[] = [];
  const compile = async (path: string): Promise<string> => {
    const compiled = await bundle(new URL(path, import.meta.url));
    bundles.push(compiled);
    return compiled.program;
  };
  return {
    worker: await compile('./programs/worker.ts'),
    client: await compile('./programs/client.ts'),
    ledger: await compile('./ledger/ledger-process.ts'),
    judge: await compile('./judge-process.ts'),
    remove: async () => {
      for (const compiled of bundles) await compiled.remove();
    },
  };
}

export interface ChaosRun {
  readonly programs: Programs;
  readonly options: ChaosOptions;
  readonly faults: readonly Fault[];
  readonly mutant?: Mutant | undefined;
  /** Where the ledger is copied to. */
  readonly keep?: string | undefined;
  readonly progress?: (text: string) => void;
  /** Is told of each part when it is judged; `tookMs` is of all of it. */
  readonly onPart?: (findings: ChaosFindings, chaosMs: number, tookMs: number) => Promise<void>;
}

/** What a run has found. */
export interface ChaosFindings extends PartFindings {
  readonly source: string;
}

/** Everything of a run that has to be ended. */
class Resources {
  readonly #undo: (() => Promise<unknown>)[] = [];

  onEnd(undo: () => Promise<unknown>): void {
    this.#undo.push(undo);
  }

  async end(): Promise<void> {
    for (const undo of this.#undo.reverse()) await undo();
  }
}

/**
 * Runs the whole campaign: faults, then heal, then an immediate stop and restart of the server, then the judges. In parts, if it is asked
 * for: all of that for each, and what was judged is deleted before the next one goes on, on the same server, in the same database.
 */
export function runChaosCampaign(run: ChaosRun): Promise<ChaosFindings> {
  return runUntilEnd((resources) => play(run, resources));
}

async function runUntilEnd<Value>(work: (resources: Resources) => Promise<Value>): Promise<Value> {
  const resources = new Resources();
  try {
    return await work(resources);
  } finally {
    await resources.end();
  }
}

async function play(run: ChaosRun, resources: Resources): Promise<ChaosFindings> {
  const { options, faults, mutant, progress = () => undefined } = run;
  const random = new SeededRandom(options.seed);
  const server = await createServer(faults);
  resources.onEnd(() => server.close());
  const database = await prepareDatabase(server, mutant);
  const source = `PostgreSQL ${server.release}`;
  const parts: PartFindings[] = [];
  for (const chaosMs of partsOf(options)) {
    const begun = performance.now();
    if (parts.length > 0) await forgetJudged(database);
    const part = await runUntilEnd((own) => playPart(run, { server, database, random, chaosMs }, own));
    parts.push(part);
    await run.onPart?.({ ...part, source }, chaosMs, performance.now() - begun);
    if (options.partMs < options.chaosMs) progress(`part ${String(parts.length)}: ${sumUp(part.verdicts)}`);
    // What is wrong is there to be looked at.
    if (sumUp(part.verdicts) === 'red') break;
  }
  return { ...joinParts(parts), source };
}

function partsOf({ chaosMs, partMs }: ChaosOptions): readonly number[] {
  const count = Math.max(1, Math.ceil(chaosMs / partMs));
  return Array.from({ length: count }, () => chaosMs / count);
}

interface Part {
  readonly server: OwnServer;
  readonly database: string;
  readonly random: SeededRandom;
  readonly chaosMs: number;
}

/** Faults, heal, immediate stop, judges: with processes and a ledger of its own. */
async function playPart(run: ChaosRun, part: Part, resources: Resources): Promise<PartFindings> {
  const { programs, options, faults, progress = () => undefined } = run;
  const { server, database, random, chaosMs } = part;
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-chaos-'));
  resources.onEnd(() => rm(folder, { recursive: true, force: true }));
  const path = join(folder, 'ledger.jsonl');
  const ledger = await LedgerProcess.launch(programs.ledger, path);
  resources.onEnd(() => ledger.end());

  const common = commonOptions(run, database, ledger.port);
  const crew = new Crew(programs.worker, common, ledger.client, random);
  resources.onEnd(() => crew.end());
  await Promise.all(Array.from({ length: options.executors }, () => crew.launch()));
  const client = await Member.launch(
    programs.client,
    { ...common, who: 'client', executorId: '', seed: options.seed },
    ledger.client,
  );
  resources.onEnd(() => client.kill());
  progress(`${String(options.executors)} executors and a client run on ${server.release}`);

  const sql = new PatientSql(database);
  resources.onEnd(() => sql.close());
  await ledger.client.tell({ what: 'phase', phase: 'faults' });
  const findings = await disturb({ faults, chaosMs, random, ledger: ledger.client }, (signal, hit) => ({
    ...{ random, crew, client, server, leaseMs: options.leaseMs, signal, hit },
    sql: (statement, parameters) => sql.query(statement, parameters),
    pause: (ms) => pauseUntil(signal, ms),
  }));
  await heal({ crew, client, sql, ledger, options, faults, maxConnections: common.maxConnections });
  progress('healed');
  const refusals = crew.refusals;
  await crew.end();
  await client.kill();
  await sql.close();
  await ledger.client.tell({ what: 'phase', phase: 'over' });
  await server.restart('immediate');
  progress('the server is back after an immediate stop');
  const verdicts = await judgeApart(programs.judge, {
    database,
    ledger: path,
    options,
    faults: faults.map(({ name, wants }) => ({ name, wants })),
    refusals,
    documentedCodes: documentedCodes(),
    keep: run.keep,
  });
  return { verdicts, ...findings };
}

/** What is asked for by a fault that is the only one. Without the small disk where this machine gives none: the fault says so then. */
async function createServer([only, ...others]: readonly Fault[]): Promise<OwnServer> {
  const { settings, diskMegabytes } = (others.length === 0 ? only?.server : undefined) ?? {};
  const options = { release: releaseAsked(process.env), settings: { max_connections: 200, ...settings } };
  if (diskMegabytes === undefined) return OwnServer.create(options);
  try {
    return await OwnServer.create({ ...options, diskMegabytes });
  } catch (error) {
    if (!(error instanceof NoSmallDiskError)) throw error;
    return OwnServer.create(options);
  }
}

/** An empty database with the schema, the audit, and the fault that is built in if there is one. */
async function prepareDatabase(server: OwnServer, mutant: Mutant | undefined): Promise<string> {
  await server.query(`CREATE DATABASE ${DATABASE}`);
  const database = server.urlOf(DATABASE);
  const client = await HoldfastClient.connect({ database, migrate: true, logger: silentLogger });
  await client.close();
  const sql = new pg.Client({ connectionString: database });
  await sql.connect();
  await installAudit(sql);
  await sql.end();
  if (mutant !== undefined) await applyMutant(database, mutant);
  return database;
}

function commonOptions({ options, faults }: ChaosRun, database: string, ledgerPort: number): CrewOptions {
  const [only, ...others] = faults;
  const alone = others.length === 0 ? only : undefined;
  const traffic: Traffic = alone?.traffic ?? MIXED;
  return {
    database,
    ledgerPort,
    leaseMs: options.leaseMs,
    pollMs: POLL_MS,
    traffic,
    maxConnections: MAX_CONNECTIONS,
    outstanding: options.outstanding,
    bodyMs: BODY_MS,
    transactionMs: TRANSACTION_MS,
    ...alone?.crew,
  };
}

interface Healing {
  readonly crew: Crew;
  readonly client: Member;
  readonly sql: PatientSql;
  readonly ledger: LedgerProcess;
  readonly options: ChaosOptions;
  readonly faults: readonly Fault[];
  readonly maxConnections: number;
}

/** Everybody is well again, nothing new is started, and what is under way has to end. Then everybody says how he is. */
async function heal({ crew, client, sql, ledger, options, faults, maxConnections }: Healing): Promise<void> {
  await crew.allWell();
  await ledger.client.tell({ what: 'phase', phase: 'heal' });
  await Promise.all([client, ...crew.running].map((member) => member.tell({ do: 'calm' })));
  const lingersMs = Math.max(0, ...faults.map((fault) => fault.lingersMs ?? 0));
  const deadline = performance.now() + options.healMs + lingersMs;
  while (performance.now() < deadline && (await countOpen(sql)) > 0) await later(100);
  // Others have finished what they ran: they have not heard of it before their connections are given up.
  while (performance.now() < deadline && crew.running.some(({ isTroubled }) => isTroubled)) await later(100);
  await ledger.client.tell({ what: 'phase', phase: 'settled' });
  await later(QUIET_MS);
  await Promise.all(crew.running.map((member) => member.tell({ do: 'report' })));
  await noteConnections(sql, ledger, maxConnections);
  const all = await sql.query<{ workflow_id: string }>(
    `SELECT workflow_id FROM holdfast.workflow_outcome ORDER BY workflow_id`,
  );
  const workflowIds = all.map(({ workflow_id }) => workflow_id);
  // By two who have seen nothing of it: what they are told has to be what everybody was.
  const observers = [client, crew.running[0]].filter((member) => member !== undefined);
  await Promise.all(observers.map((member) => member.tell({ do: 'observe', workflowIds })));
}

/** Besides those of its pool, an executor listens on one. */
const BESIDES = 1;

async function noteConnections(sql: PatientSql, { client }: LedgerProcess, maxConnections: number): Promise<void> {
  const rows = await sql.query<{ process: string; count: number }>(
    `SELECT application_name AS process, count(*)::int AS count FROM pg_stat_activity
      WHERE application_name LIKE 'executor%' GROUP BY 1`,
  );
  for (const row of rows) await client.tell({ what: 'connections', ...row, limit: maxConnections + BESIDES });
}

async function countOpen(sql: PatientSql): Promise<number> {
  const [row] = await sql.query<{ count: number }>(
    `SELECT (SELECT count(*) FROM holdfast.workflow_status WHERE completed_at IS NULL)::int
          + (SELECT count(*) FROM holdfast.outbox_event)::int AS count`,
  );
  return row?.count ?? 0;
}
