import { editFunctions, type FunctionEdit } from '../support/sql-mutants.js';

/** Faults built into the SQL of the campaign's database, by which the judges prove that they see such faults. */
export const MUTANTS = ['no-limit', 'no-takeover', 'live-takeover'] as const;

export type Mutant = (typeof MUTANTS)[number];

const EDITS: Readonly<Record<Mutant, readonly FunctionEdit[]>> = {
  /** Whatever is counted: there is room. */
  'no-limit': [
    { name: 'queue_room', find: /END\s*(\$function\$)/, put: 'slots := NULL; own := NULL; rate := NULL; END $1' },
    { name: 'key_room', find: /END\s*(\$function\$)/, put: 'slots := NULL; rate := NULL; END $1' },
  ],
  /** No lease is ever taken to have expired. */
  'no-takeover': [
    { name: 'claim_work', find: /e\.lease_until <= v_now/g, put: 'false' },
    { name: 'recover_from_queue', find: /e\.lease_until <= v_now/g, put: 'false' },
  ],
  /** All leases of others are taken to have expired: what runs well is taken over. */
  'live-takeover': [{ name: 'claim_work', find: /e\.lease_until <= v_now/g, put: 'e.executor_id <> p_executor_id' }],
};

export function applyMutant(database: string, mutant: Mutant): Promise<void> {
  return editFunctions(database, mutant, EDITS[mutant]);
}
