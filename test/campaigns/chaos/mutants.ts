import { editFunctions, type FunctionEdit } from '../support/sql-mutants.js';

/** Faults built into the SQL of the campaign's database, by which the judges prove that they see such faults. */
export const MUTANTS = [
  'no-token',
  'no-version',
  'select-then-insert',
  'retention-deletes-awaited-child',
  'result-overwritten',
] as const;

export type Mutant = (typeof MUTANTS)[number];

const EDITS: Readonly<Record<Mutant, readonly FunctionEdit[]>> = {
  /** Who has lost a workflow is told of a conflict, reads the version that he finds, and writes. */
  'no-token': [
    { name: 'checkpoint_one', find: / AND s\.owner_token = p_token/g, put: '' },
    { name: 'checkpoint_batch', find: /s\.owner_token = r\.token AND /g, put: '' },
    { name: 'complete_batch', find: /s\.owner_token = r\.token AND /g, put: '' },
    { name: 'classify_refusal', find: /v_token IS DISTINCT FROM p_token/, put: 'v_token IS NULL' },
    { name: 'verify_ownership', find: /s\.owner_token = /g, put: 's.owner_token IS NOT NULL OR s.owner_token = ' },
  ],
  /** What was written since the writer looked is not noticed: a second try writes again. */
  'no-version': [
    { name: 'checkpoint_one', find: / AND s\.record_version = p_version/g, put: '' },
    { name: 'checkpoint_batch', find: / AND s\.record_version = r\.version/g, put: '' },
    {
      name: 'checkpoint_one',
      find: /p_version \+ 1, v_epoch, p_nonce, v_now[^;]*;/,
      put: `p_version + 1, v_epoch, p_nonce, v_now, v_now)
            ON CONFLICT (workflow_id, seq) DO UPDATE SET nonce = excluded.nonce;`,
    },
  ],
  /** Whether the ID is new is looked at, and then it is inserted over whatever has come in between. */
  'select-then-insert': [
    {
      name: 'start_batch',
      find: /ON CONFLICT \(workflow_id\) DO NOTHING/,
      put: `ON CONFLICT (workflow_id) DO UPDATE SET owner_token = excluded.owner_token, status = 'PENDING', completed_at = NULL,
              executor_id = excluded.executor_id, incarnation = excluded.incarnation, record_version = 1, epoch = 1`,
    },
  ],
  /** Nobody asks whether a parent waits. */
  'retention-deletes-awaited-child': [{ name: 'delete_workflow', find: /IF FOUND AND NOT p_force/, put: 'IF false' }],
  /** A result that is there already gives way to a later one. */
  'result-overwritten': [
    {
      name: 'checkpoint_one',
      find: /ELSE\s+SELECT 1, c\.\*/,
      put: `ELSE
        UPDATE step_result x SET output = p_output, error = p_error
         WHERE x.workflow_id = p_workflow_id AND x.seq = p_seq;
        SELECT 1, c.*`,
    },
    {
      name: 'checkpoint_batch',
      find: /(IF v_written < cardinality\(p_workflow_ids\) THEN)/,
      put: `$1
        UPDATE step_result x SET output = r.output, error = r.error
          FROM unnest(p_workflow_ids, p_seqs, p_nonces, p_outputs, p_errors) AS r (workflow_id, seq, nonce, output, error)
         WHERE x.workflow_id = r.workflow_id AND x.seq = r.seq AND x.nonce <> r.nonce;`,
    },
  ],
};

export function applyMutant(database: string, mutant: Mutant): Promise<void> {
  return editFunctions(database, mutant, EDITS[mutant]);
}
