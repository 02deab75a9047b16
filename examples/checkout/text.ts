// Text from outside, made fit for a terminal.

const segmenter = new Intl.Segmenter('en', { granularity: 'grapheme' });
const ZERO_WIDTH_JOINER = '\u200d';

/** Without control characters, which would steer the terminal, and not longer than `maxLength` characters as people count them. */
export function printable(text: string, maxLength = 32): string {
  const graphemes: string[] = [];
  // A character may be made of many code points; what is cut off need not be looked at.
  for (const { segment } of segmenter.segment(text.slice(0, maxLength * 32))) {
    if (graphemes.length === maxLength) return `${graphemes.slice(0, -1).join('')}…`;
    graphemes.push(segment.replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu, escapeCharacter));
  }
  return graphemes.join('');
}

function escapeCharacter(character: string): string {
  if (character === ZERO_WIDTH_JOINER) return character;
  return `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;
}

/** Columns that a text takes in a terminal: emoji and East Asian characters take two. */
export function columnsOf(text: string): number {
  let columns = 0;
  for (const { segment } of segmenter.segment(text)) {
    columns +=
      /\p{Emoji_Presentation}|\ufe0f|\p{Script=Han}|\p{Script=Hiragana}|\p{Script=Katakana}|\p{Script=Hangul}/u.test(
        segment,
      )
        ? 2
        : 1;
  }
  return columns;
}

/** Rows under a heading, in columns. */
export function layTable(heading: readonly string[], rows: readonly (readonly string[])[]): readonly string[] {
  const all = [heading, ...rows];
  const widths = heading.map((_, column) => Math.max(...all.map((row) => columnsOf(row[column] ?? ''))));
  const layRow = (row: readonly string[]): string =>
    row
      .map((cell, column) => cell + ' '.repeat(Math.max(0, (widths[column] ?? 0) - columnsOf(cell))))
      .join('  ')
      .trimEnd();
  return [layRow(heading), widths.map((width) => '-'.repeat(width)).join('  '), ...rows.map(layRow)];
}

/** The first few of a list, and how many more there are. */
export function listed(texts: readonly string[], limit = 8): string {
  const shown = texts.slice(0, limit).join(', ');
  return texts.length > limit ? `${shown} and ${String(texts.length - limit)} more` : shown;
}

/** `1 order`, `2 orders`. */
export function counted(count: number, noun: string): string {
  return `${String(count)} ${noun}${count === 1 ? '' : 's'}`;
}
