import { HoldfastError, type HoldfastErrorOptions } from './holdfast-error.js';

/** The embedded PostgreSQL could not be found, prepared or started. */
export class EmbeddedPostgresError extends HoldfastError {
  override readonly code = 'EMBEDDED_POSTGRES_FAILED';
  override readonly name = 'EmbeddedPostgresError';
  /** The end of what `initdb` or the server wrote, empty when neither was started. */
  readonly log: string;

  constructor(message: string, options: HoldfastErrorOptions & { readonly log?: string } = {}) {
    const { log = '', ...rest } = options;
    super(log === '' ? message : `${message}\n${log}`, rest);
    this.log = log;
  }
}
