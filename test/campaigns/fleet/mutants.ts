import pg from 'pg';

/** Faults built into the SQL of the campaign's database, by which the judges prove that they see such faults. */
export const MUTANTS = ['no-limit', 'no-takeover', 'live-takeover'] as const;

export type Mutant = (typeof MUTANTS)[number];

interface Edit {
  readonly name: string;
  readonly find: RegExp;
  readonly put: string;
}

const EDITS: Readonly<Record<Mutant, readonly Edit[]>> = {
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

export async function applyMutant(database: string, mutant: Mutant): Promise<void> {
  const client = new pg.Client({ connectionString: database });
  await client.connect();
  try {
    for (const { name, find, put } of EDITS[mutant]) {
      const { rows } = await client.query<{ text: string }>(
        `SELECT pg_get_functiondef(p.oid) AS text FROM pg_proc p
           JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = 'holdfast' AND p.proname = $1`,
        [name],
      );
      const edited = rows.map(({ text }) => text.replace(find, put));
      if (edited.length === 0 || edited.every((text, index) => text === rows[index]?.text)) {
        throw new Error(`The mutant "${mutant}" no longer fits the function ${name}.`);
      }
      for (const text of edited) await client.query(text);
    }
  } finally {
    await client.end();
  }
}
