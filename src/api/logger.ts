/**
 * Where Holdfast reports what nobody is told by a return value. Fields never contain inputs, outputs or error messages of
 * workflows and steps: those may hold secrets.
 */
export interface Logger {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
}

export type LogFields = Readonly<Record<string, string | number | boolean | undefined>>;
