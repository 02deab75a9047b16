/**
 * Compares two versions of the library by the rules of Semantic Versioning: negative when `left` is the older one, zero
 * when neither is.
 */
export function compareLibraryVersions(left: string, right: string): number {
  const [a, b] = [parse(left), parse(right)];
  const byCore = compareLists(a.core, b.core);
  if (byCore !== 0) return byCore;
  // A version without a pre-release label comes after those with one.
  if (a.label.length === 0 || b.label.length === 0) return b.label.length - a.label.length;
  return compareLists(a.label, b.label);
}

interface Version {
  readonly core: readonly string[];
  readonly label: readonly string[];
}

function parse(text: string): Version {
  const [version = ''] = text.split('+', 1);
  const dash = version.indexOf('-');
  return dash === -1
    ? { core: version.split('.'), label: [] }
    : { core: version.slice(0, dash).split('.'), label: version.slice(dash + 1).split('.') };
}

function compareLists(left: readonly string[], right: readonly string[]): number {
  for (const [index, item] of left.entries()) {
    const other = right[index];
    if (other === undefined) return 1;
    const difference = compareIdentifiers(item, other);
    if (difference !== 0) return difference;
  }
  return left.length - right.length;
}

/** Numbers by value and before words; words by code point. */
function compareIdentifiers(left: string, right: string): number {
  const [isNumber, isOtherNumber] = [/^\d+$/.test(left), /^\d+$/.test(right)];
  if (isNumber && isOtherNumber) return Number(left) - Number(right);
  if (isNumber !== isOtherNumber) return isNumber ? -1 : 1;
  return left < right ? -1 : left > right ? 1 : 0;
}
