import { InvalidSchemaNameError } from '../../errors/schema-errors.js';

/** Schema that Holdfast lives in unless told otherwise. */
export const DEFAULT_SCHEMA = 'holdfast';

/** 48 bytes at most, so that notification channels named after the schema stay below PostgreSQL's 63. */
const SCHEMA_NAME = /^[a-z_][a-z0-9_]{0,47}$/;

/**
 * Throws unless `schema` can be the home of Holdfast's tables. What passes can stand between quotation marks in a
 * statement as it is.
 * @throws InvalidSchemaNameError
 */
export function assertSchemaName(schema: string): void {
  if (!SCHEMA_NAME.test(schema)) {
    throw new InvalidSchemaNameError(
      `Schema name ${JSON.stringify(schema)} is not accepted: use 1 to 48 of a-z, 0-9 and _, the first one not a digit.`,
    );
  }
  if (schema.startsWith('pg_') || schema === 'information_schema') {
    throw new InvalidSchemaNameError(
      `Schema name "${schema}" is reserved by PostgreSQL: choose one that does not start with pg_.`,
    );
  }
}
