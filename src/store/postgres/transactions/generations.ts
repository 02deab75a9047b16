import type { Driver } from '../../../drivers/driver.js';
import type { Ownership } from '../../store.js';
import { askAgain } from '../ask-again.js';
import type { CompletionKey } from './completions.js';

interface GenerationRow {
  readonly [column: string]: unknown;
  readonly from_seq: number;
  readonly generation: number;
  readonly installation_id: string;
}

/** To which generations an owner's calls belong; asked once by each. Undefined: it is not the owner any more. */
export class Generations {
  readonly #driver: Driver;
  readonly #schema: string;
  readonly #closing: AbortSignal;
  /** Goes with the execution. */
  readonly #known = new WeakMap<Ownership, Promise<readonly GenerationRow[]>>();

  constructor(driver: Driver, schema: string, closing: AbortSignal) {
    this.#driver = driver;
    this.#schema = schema;
    this.#closing = closing;
  }

  async keyOf(ownership: Ownership, seq: number): Promise<CompletionKey | undefined> {
    let asked = this.#known.get(ownership);
    if (asked === undefined) {
      asked = this.#ask(ownership);
      this.#known.set(ownership, asked);
      asked.catch(() => this.#known.delete(ownership));
    }
    const rows = await asked;
    const [first] = rows;
    if (first === undefined) return undefined;
    const of = rows.filter((row) => row.from_seq <= seq).reduce((a, b) => (b.from_seq > a.from_seq ? b : a), first);
    return {
      installation: first.installation_id,
      workflowId: ownership.workflowId,
      seq,
      generation: of.generation,
      ownerGeneration: Math.max(...rows.map(({ generation }) => generation)),
      epoch: ownership.epoch,
    };
  }

  #ask({ workflowId, token }: Ownership): Promise<readonly GenerationRow[]> {
    return askAgain<GenerationRow>(
      this.#driver,
      this.#closing,
      `SELECT from_seq, generation::float8 AS generation, installation_id::text AS installation_id
         FROM "${this.#schema}".transaction_generations($1::text, $2::uuid) ORDER BY from_seq`,
      [workflowId, token],
      { prepare: 'holdfast_transaction_generations', forMs: Infinity },
    );
  }
}
