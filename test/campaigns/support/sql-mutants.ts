import pg from 'pg';

/** One change to a function of the protocol. */
export interface FunctionEdit {
  readonly name: string;
  readonly find: RegExp;
  readonly put: string;
}

/**
 * Changes functions in a database: a fault that a campaign's judges have to find.
 * @throws Error when one of the edits changes nothing
 */
export async function editFunctions(database: string, mutant: string, edits: readonly FunctionEdit[]): Promise<void> {
  const client = new pg.Client({ connectionString: database });
  await client.connect();
  try {
    for (const { name, find, put } of edits) {
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
