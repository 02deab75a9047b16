import { readFileSync, statSync } from 'node:fs';
import type { z } from 'zod';
import { Order } from './checkout.js';
import { StoryError } from './story-error.js';
import { printable } from './text.js';

const MAX_FILE_BYTES = 64 * 1024 * 1024;
const MAX_LINE_BYTES = 64 * 1024;
/** More than that proves nothing more, and takes longer. */
const MAX_ORDERS = 100;
const LONGEST_PROBLEM = 160;
const LINE_FEED = 0x0a;

/** A line that is no order, and why. */
export interface SkippedLine {
  readonly lineNumber: number;
  readonly problem: string;
}

export interface OrdersFile {
  readonly orders: readonly Order[];
  readonly skipped: readonly SkippedLine[];
  /** Good orders beyond the limit. */
  readonly leftOut: number;
}

/** @throws StoryError when there is no such file, or it cannot be read. */
export function readOrdersFile(path: string): OrdersFile {
  return parseOrders(readFile(path));
}

function readFile(path: string): Buffer {
  const name = printable(path, LONGEST_PROBLEM);
  try {
    const stats = statSync(path);
    if (stats.isDirectory()) throw new StoryError(`"${name}" is a directory, not a file of orders.`);
    if (stats.size > MAX_FILE_BYTES) {
      throw new StoryError(`"${name}" has ${String(stats.size)} bytes; at most ${String(MAX_FILE_BYTES)} are read.`);
    }
    return readFileSync(path);
  } catch (error) {
    if (error instanceof StoryError) throw error;
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') throw new StoryError(`There is no file "${name}".`, { cause: error });
    throw new StoryError(`The file "${name}" cannot be read (${code ?? String(error)}).`, { cause: error });
  }
}

/** One order a line, as JSON; blank lines are nothing. Bad lines are told of and skipped: they never stop the good ones. */
export function parseOrders(file: Buffer): OrdersFile {
  const orders: Order[] = [];
  const skipped: SkippedLine[] = [];
  const lineOfId = new Map<string, number>();
  let leftOut = 0;
  for (const { lineNumber, bytes } of linesOf(file)) {
    const parsed = parseLine(bytes);
    if (parsed === undefined) continue;
    if (typeof parsed === 'string') {
      skipped.push({ lineNumber, problem: printable(parsed, LONGEST_PROBLEM) });
      continue;
    }
    const earlier = lineOfId.get(parsed.id);
    if (earlier !== undefined) {
      const problem = `order "${printable(parsed.id, LONGEST_PROBLEM)}" is on line ${String(earlier)} already`;
      skipped.push({ lineNumber, problem });
      continue;
    }
    lineOfId.set(parsed.id, lineNumber);
    if (orders.length < MAX_ORDERS) orders.push(parsed);
    else leftOut++;
  }
  return { orders, skipped, leftOut };
}

/** By line feeds alone: other characters that count as line ends elsewhere are legal inside JSON texts. */
function* linesOf(file: Buffer): Generator<{ readonly lineNumber: number; readonly bytes: Buffer }> {
  let from = 0;
  for (let lineNumber = 1; from < file.length; lineNumber++) {
    const end = file.indexOf(LINE_FEED, from);
    yield { lineNumber, bytes: file.subarray(from, end === -1 ? file.length : end) };
    from = end === -1 ? file.length : end + 1;
  }
}

/** The order; or what is wrong with the line; or nothing, for a blank line. */
function parseLine(bytes: Buffer): Order | string | undefined {
  if (bytes.length > MAX_LINE_BYTES) {
    return `too long: ${String(bytes.length)} bytes, at most ${String(MAX_LINE_BYTES)} are read`;
  }
  let text: string;
  try {
    // Takes a byte order mark off, as Windows editors leave it at the beginning of files.
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return 'not text in UTF-8';
  }
  if (text.trim() === '') return undefined;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return `not JSON: ${error instanceof Error ? error.message : String(error)}`;
  }
  const checked = Order.safeParse(value);
  return checked.success ? checked.data : `not an order: ${describeIssues(checked.error)}`;
}

function describeIssues(error: z.ZodError): string {
  return error.issues
    .map(({ path, message }) => (path.length === 0 ? message : `${path.map(String).join('.')}: ${message}`))
    .join('; ');
}
