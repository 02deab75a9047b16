import type { z } from 'zod';

/** What is wrong with which part, in one line. It never repeats a value. */
export function describeIssues({ issues }: z.ZodError): string {
  return issues
    .map(({ path, message }) => (path.length === 0 ? message : `${path.map(String).join('.')}: ${message}`))
    .join('; ');
}
