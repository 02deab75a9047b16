import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { format, resolveConfig } from 'prettier';

const PAGE = fileURLToPath(new URL('../../../docs/reliability.md', import.meta.url));

/**
 * Writes the part of docs/reliability.md that a program makes: what stands between its two comments.
 * @throws Error when they are not there.
 */
export async function writeMadePart(name: string, text: string): Promise<void> {
  const begin = `<!-- ${name}: begin -->`;
  const end = `<!-- ${name}: end -->`;
  const page = readFileSync(PAGE, 'utf8');
  const from = page.indexOf(begin);
  const to = page.indexOf(end);
  if (from === -1 || to < from) throw new Error(`docs/reliability.md has no place for this: ${begin} … ${end}.`);
  const whole = `${page.slice(0, from)}${begin}\n\n${text}\n\n${page.slice(to)}`;
  writeFileSync(PAGE, await format(whole, { ...(await resolveConfig(PAGE)), parser: 'markdown' }));
}

export function markdownTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}
