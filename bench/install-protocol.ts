import { readdirSync, readFileSync } from 'node:fs';

import type pg from 'pg';

const SQL_DIR = new URL('../sql/', import.meta.url);

/** The schema as it is in this repository, without the library: the bare client must owe nothing to what it is the limit of. */
export async function installProtocol(client: pg.Client): Promise<void> {
  await client.query('CREATE SCHEMA holdfast');
  await client.query('SET search_path = holdfast');
  // The functions name each other, and files are read by name.
  await client.query('SET check_function_bodies = off');
  for (const directory of ['migrations', 'functions']) {
    const files = readdirSync(new URL(`${directory}/`, SQL_DIR)).filter((file) => file.endsWith('.sql'));
    for (const file of files.sort()) {
      await client.query(readFileSync(new URL(`${directory}/${file}`, SQL_DIR), 'utf8'));
    }
  }
}
