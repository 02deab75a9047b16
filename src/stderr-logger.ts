import type { LogFields, Logger } from './api/logger.js';

/** Warnings and errors as lines of JSON on standard error; the rest is dropped. */
export const stderrLogger: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: (message, fields) => {
    write('warn', message, fields);
  },
  error: (message, fields) => {
    write('error', message, fields);
  },
};

function write(level: string, message: string, fields: LogFields = {}): void {
  process.stderr.write(`${JSON.stringify({ level, source: 'holdfast', message, ...fields })}\n`);
}
