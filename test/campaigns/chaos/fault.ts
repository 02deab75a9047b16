import type pg from 'pg';
import type { OwnServer, OwnServerOptions } from '../support/own-server.js';
import type { SeededRandom } from '../support/seeded-random.js';
import type { Crew, CrewOptions } from './crew.js';
import type { Member } from './member.js';
import type { Traffic } from './traffic.js';

/** One way in which things go wrong. */
export interface Fault {
  /** As it is called on the command line and in the table. */
  readonly name: string;
  /** What is done. */
  readonly does: string;
  /** How one knows that it hit what it was meant for. */
  readonly landsWhen: string;
  /** What has to happen in a run of this fault alone, or the run is void. */
  readonly wants: {
    /** A workflow goes on in another executor. */
    readonly takeover?: boolean;
    /** A write of an execution that has lost its workflow is refused. */
    readonly refusal?: boolean;
    /** An execution that has lost its workflow is told the outcome that another one recorded. */
    readonly parked?: boolean;
  };
  /** What is started while it is the only fault. Default: of everything something. */
  readonly traffic?: Traffic;
  /** How executors are launched in a run of this fault. */
  readonly crew?: Partial<Pick<CrewOptions, 'maxConnections' | 'outstanding' | 'transactionMs' | 'bodyMs'>>;
  /** What server a run of this fault has, besides what all have. */
  readonly server?: Partial<Pick<OwnServerOptions, 'settings' | 'diskMegabytes'>>;
  /**
   * How long after the end of the fault something may still wait for it, in milliseconds: a connection that carries nothing is given up
   * after the time limit of statements. Default 0.
   */
  readonly lingersMs?: number;
  /** Whether it cannot be one among others, since executors have to be launched for it. Default false. */
  readonly alone?: boolean;
  /** Whether the control of the campaign expects losses (then they must be found). Default false. */
  readonly losesData?: boolean;
  /**
   * Disturbs until `arena.signal` fires, and calls `arena.hit` for each hit that landed. What it did is undone when it resolves, but for
   * what the crew mends by itself.
   * @throws FaultImpossible where this machine cannot do it: the run is void then, and says so.
   */
  run(arena: Arena): Promise<void>;
}

/** What a fault has to work with. */
export interface Arena {
  readonly random: SeededRandom;
  readonly crew: Crew;
  readonly client: Member;
  readonly server: OwnServer;
  readonly leaseMs: number;
  /** Fires when the faults are over. */
  readonly signal: AbortSignal;
  /** A hit landed in its window. */
  readonly hit: (detail: string) => void;
  /** A connection to the server itself, until the run ends; opened again where it was lost. */
  readonly sql: <Row extends pg.QueryResultRow>(statement: string, parameters?: readonly unknown[]) => Promise<Row[]>;
  /** @returns whether the faults go on */
  readonly pause: (ms: number) => Promise<boolean>;
}

/** Thrown by a fault that this machine cannot do, with the reason. */
export class FaultImpossible extends Error {
  override readonly name = 'FaultImpossible';
}
