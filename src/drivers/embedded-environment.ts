/**
 * The environment of the server's programs: without the caller's `PG…` variables, which would change ports and settings,
 * and without `NODE_OPTIONS`, which would load the caller's debugger or hooks into the supervisor; in the C locale, so that logs are in English.
 */
export function serverEnvironment(): Record<string, string> {
  const environment: Record<string, string> = {};
  for (const [name, value] of Object.entries(process.env)) {
    if (value === undefined || name.startsWith('PG') || name.startsWith('NODE_') || name.startsWith('LC_')) continue;
    environment[name] = value;
  }
  return { ...environment, LC_ALL: 'C' };
}
