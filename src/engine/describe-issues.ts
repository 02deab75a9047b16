import type { z } from 'zod';

type Issue = z.core.$ZodIssue;

/** What is wrong with which part, in one line. It never repeats a value. */
export function describeIssues({ issues }: z.ZodError): string {
  return issues
    .map(named)
    .map(({ path, message }) => (path.length === 0 ? message : `${path.map(String).join('.')}: ${message}`))
    .join('; ');
}

/** Of several forms that a value can have, what is wrong with the one that it comes closest to, or with the first one. */
function named(issue: Issue): Pick<Issue, 'path' | 'message'> {
  if (issue.code !== 'invalid_union' || issue.message !== UNION) return issue;
  const forms = issue.errors.flatMap(([first]) => (first === undefined ? [] : [named(first)]));
  const [first] = forms;
  if (first === undefined) return issue;
  const closest = forms.reduce((best, form) => (form.path.length > best.path.length ? form : best), first);
  return { path: [...issue.path, ...closest.path], message: closest.message };
}

/** What zod says of a union that has no message of its own: nothing that helps. */
const UNION = 'Invalid input';
