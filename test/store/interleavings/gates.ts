import type { ProtocolBench, Session } from '../support-protocol.js';
import type { Operation } from './operation.js';
import { endScene, type Scene, type SceneKind, setScene } from './scenes.js';

/** Rows that somebody outside locks, so that operations stop where they come to them. */
export interface Gate {
  readonly label: string;
  readonly lock: string;
}

/** A place for each kind of row that operations lock besides one another. "$1" is the ID of the scene. */
export const GATES: readonly Gate[] = [
  { label: 'behind the workflow’s row', lock: 'SELECT FROM @workflow_status WHERE workflow_id = $1 FOR UPDATE' },
  {
    label: 'behind its child’s row',
    lock: `SELECT FROM @workflow_status WHERE workflow_id = $1 || ' child' FOR UPDATE`,
  },
  {
    label: 'behind the receiver’s row',
    lock: `SELECT FROM @workflow_status WHERE workflow_id = $1 || ' receiver' FOR UPDATE`,
  },
  { label: 'behind its messages', lock: 'SELECT FROM @message WHERE workflow_id = $1 FOR UPDATE' },
  { label: 'behind its questions', lock: 'SELECT FROM @query_request WHERE workflow_id = $1 FOR UPDATE' },
  { label: 'behind its intents', lock: 'SELECT FROM @step_intent WHERE workflow_id = $1 FOR UPDATE' },
  { label: 'behind its results', lock: 'SELECT FROM @step_result WHERE workflow_id = $1 FOR UPDATE' },
  { label: 'behind its events of the outbox', lock: 'SELECT FROM @outbox_event WHERE workflow_id = $1 FOR UPDATE' },
  { label: 'behind its queue', lock: `SELECT FROM @queue WHERE name = $1 || ' queue' FOR UPDATE` },
  { label: 'behind its owner', lock: `SELECT FROM @executor WHERE executor_id = $1 || ' owner' FOR UPDATE` },
];

/** The gates of one database, and which of them stop which operation. */
export class Gated {
  readonly #bench: ProtocolBench;
  readonly #keeper: Session;
  readonly #other: Session;
  readonly #stops = new Map<string, Promise<boolean>>();

  private constructor(bench: ProtocolBench, keeper: Session, other: Session) {
    this.#bench = bench;
    this.#keeper = keeper;
    this.#other = other;
  }

  static async open(bench: ProtocolBench): Promise<Gated> {
    return new Gated(bench, await bench.session(), await bench.session());
  }

  async close(gate: Gate, scene: Scene): Promise<() => Promise<void>> {
    await this.#keeper.ask('BEGIN');
    await this.#keeper.ask(gate.lock, [scene.id]);
    return async () => {
      await this.#keeper.ask('COMMIT');
    };
  }

  /** Found out by trying it once. */
  stops(gate: Gate, kind: SceneKind, operation: Operation): Promise<boolean> {
    const key = `${gate.label}, ${kind}, ${operation.label}`;
    let found = this.#stops.get(key);
    if (found === undefined) {
      found = this.#tryOut(gate, kind, operation);
      this.#stops.set(key, found);
    }
    return found;
  }

  async #tryOut(gate: Gate, kind: SceneKind, operation: Operation): Promise<boolean> {
    const { ask } = this.#bench;
    const scene = await setScene(ask, kind);
    const open = await this.close(gate, scene);
    const running = operation.run(this.#other.ask, scene);
    running.catch(() => undefined);
    const isStopped = await this.#bench.untilSettledOrBlocked(this.#other.pid, running);
    await open();
    const tried = await running;
    await endScene(ask, scene);
    return isStopped || tried === 'held up';
  }
}
