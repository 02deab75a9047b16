import type { LogFields, Logger } from './api/logger.js';
import { stderrLogger } from './stderr-logger.js';

type Level = 'debug' | 'info' | 'warn' | 'error';
/** An asynchronous one fits the type of one that is not. */
type MaybeAsynchronous = Readonly<Record<Level, (message: string, fields?: LogFields) => unknown>>;

/**
 * The application's logger, by which nothing that Holdfast does can fail: what it throws, or rejects with, is told on standard error
 * together with what it was to report. Undefined: standard error.
 */
export function guardedLogger(logger: Logger | undefined): Logger {
  if (logger === undefined) return stderrLogger;
  const report = (level: Level, message: string, fields?: LogFields): void => {
    const fallBack = (): void => {
      stderrLogger[level](message, fields);
      stderrLogger.warn('The logger failed.', { level });
    };
    try {
      const written = (logger as MaybeAsynchronous)[level](message, fields);
      if (written instanceof Promise) written.catch(fallBack);
    } catch {
      fallBack();
    }
  };
  return {
    debug: (message, fields) => {
      report('debug', message, fields);
    },
    info: (message, fields) => {
      report('info', message, fields);
    },
    warn: (message, fields) => {
      report('warn', message, fields);
    },
    error: (message, fields) => {
      report('error', message, fields);
    },
  };
}
