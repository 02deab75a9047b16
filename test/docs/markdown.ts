import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** The documentation that users read, relative to the root. */
export const DOCUMENTS: readonly string[] = [
  'README.md',
  'CHANGELOG.md',
  ...readdirSync(join(ROOT, 'docs'))
    .filter((name) => name.endsWith('.md'))
    .sort()
    .map((name) => `docs/${name}`),
];

/** A fenced block. */
export interface Block {
  readonly document: string;
  /** Line of the first line of code, from 1. */
  readonly line: number;
  readonly language: string;
  readonly code: string;
  /** What an HTML comment `<!-- example: … -->` right above the block says. */
  readonly marker: string | undefined;
  /** The text block that follows the block directly: what it prints. */
  readonly output: string | undefined;
}

export function readDocument(document: string): string {
  return readFileSync(join(ROOT, document), 'utf8');
}

export function blocksOf(document: string): Block[] {
  const blocks: (Omit<Block, 'output'> & { readonly end: number })[] = [];
  const lines = readDocument(document).split('\n');
  let marker: string | undefined;
  for (let index = 0; index < lines.length; index++) {
    const line = lines[index] ?? '';
    const fence = /^```(\S*)/.exec(line);
    if (fence === null) {
      if (line.trim() !== '') marker = /^<!-- example: (\S+) -->$/.exec(line)?.[1];
      continue;
    }
    const end = lines.indexOf('```', index + 1);
    if (end === -1) throw new Error(`${document}:${String(index + 1)}: the block does not end.`);
    const code = lines.slice(index + 1, end).join('\n');
    blocks.push({ document, line: index + 2, language: fence[1] ?? '', code, marker, end });
    marker = undefined;
    index = end;
  }
  return blocks.map(({ end, ...block }, position) => {
    const next = blocks[position + 1];
    const isAdjacent =
      next?.language === 'text' &&
      lines
        .slice(end + 1, next.line - 2)
        .join('')
        .trim() === '';
    return { ...block, output: isAdjacent ? next.code : undefined };
  });
}

/** Everything outside of fenced blocks. */
export function proseOf(document: string): string {
  return readDocument(document).replaceAll(/^```[\s\S]*?^```$/gm, '');
}

/** The cells of all table rows below a heading, up to the next heading of the same or a higher level. */
export function tableRows(document: string, heading?: string): string[][] {
  let section = proseOf(document);
  if (heading !== undefined) {
    const start = section.indexOf(`\n${heading}\n`);
    if (start === -1) throw new Error(`${document} has no heading "${heading}".`);
    const level = heading.indexOf(' ');
    const rest = section.slice(start + heading.length + 2);
    const end = rest.search(new RegExp(`^#{1,${String(level)}} `, 'm'));
    section = end === -1 ? rest : rest.slice(0, end);
  }
  return section
    .split('\n')
    .filter((line) => line.startsWith('|') && !/^[|\s:-]+$/.test(line))
    .map((line) =>
      line
        .slice(1, line.lastIndexOf('|'))
        .split('|')
        .map((cell) => cell.trim()),
    );
}

/** The anchors that a document has, as GitHub makes them of its headings. */
export function anchorsOf(document: string): Set<string> {
  const headings = [...proseOf(document).matchAll(/^#{1,6} (.*)$/gm)].map(([, text = '']) => text);
  return new Set(
    headings.map((text) =>
      text
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
        .replaceAll(' ', '-'),
    ),
  );
}
