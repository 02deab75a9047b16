/**
 * Messages of PostgreSQL's extended query protocol, written into one buffer: several statements then are one packet, which `pg`,
 * with a buffer for each message, makes a vectored write of. Formats are text.
 */

/** One statement, to be parsed first where the server does not have it yet. */
export interface MessageStatement {
  readonly name: string;
  readonly text: string;
  readonly values: readonly (string | null)[];
  readonly isParsed: boolean;
}

const PARSE = 0x50;
const BIND = 0x42;
const EXECUTE = 0x45;
const SYNC = 0x53;
const FLUSH = 0x48;
/** Type byte and length. */
const HEAD_BYTES = 5;
/** Names and texts end with a zero byte. */
const END_BYTES = 1;
const INT16_BYTES = 2;
const INT32_BYTES = 4;

/**
 * What the server is to do when it has run the statements: end the group, so that the next one is executed although a statement of
 * this one failed (Sync); or answer at once, and not with what comes behind it (Flush).
 */
export type GroupEnd = 'sync' | 'flush';

/** Runs the statements one after the other; the first that fails skips the others up to the next Sync. */
export function messagesOf(statements: readonly MessageStatement[], end: GroupEnd): Buffer {
  let size = HEAD_BYTES;
  for (const statement of statements) {
    if (!statement.isParsed) size += parseBytes(statement);
    size += bindBytes(statement) + EXECUTE_BYTES;
  }
  const buffer = Buffer.allocUnsafe(size);
  let at = 0;
  for (const statement of statements) {
    if (!statement.isParsed) at = writeParse(buffer, at, statement);
    at = writeBind(buffer, at, statement);
    at = writeExecute(buffer, at);
  }
  writeHead(buffer, at, end === 'sync' ? SYNC : FLUSH, HEAD_BYTES);
  return buffer;
}

/** The unnamed portal, and the limit of rows: none. */
const EXECUTE_BYTES = HEAD_BYTES + END_BYTES + INT32_BYTES;

function parseBytes({ name, text }: MessageStatement): number {
  return HEAD_BYTES + textBytes(name) + textBytes(text) + INT16_BYTES;
}

function bindBytes({ name, values }: MessageStatement): number {
  let size = HEAD_BYTES + END_BYTES + textBytes(name) + 3 * INT16_BYTES;
  for (const value of values) size += INT32_BYTES + (value === null ? 0 : Buffer.byteLength(value));
  return size;
}

function textBytes(text: string): number {
  return Buffer.byteLength(text) + END_BYTES;
}

function writeParse(buffer: Buffer, start: number, statement: MessageStatement): number {
  let at = writeHead(buffer, start, PARSE, parseBytes(statement));
  at = writeText(buffer, at, statement.name);
  at = writeText(buffer, at, statement.text);
  // The types of the parameters are those of their casts.
  return buffer.writeInt16BE(0, at);
}

function writeBind(buffer: Buffer, start: number, statement: MessageStatement): number {
  let at = writeHead(buffer, start, BIND, bindBytes(statement));
  at = writeText(buffer, at, '');
  at = writeText(buffer, at, statement.name);
  at = buffer.writeInt16BE(0, at);
  at = buffer.writeInt16BE(statement.values.length, at);
  for (const value of statement.values) {
    if (value === null) {
      at = buffer.writeInt32BE(-1, at);
      continue;
    }
    const written = buffer.write(value, at + INT32_BYTES, 'utf8');
    buffer.writeInt32BE(written, at);
    at += INT32_BYTES + written;
  }
  return buffer.writeInt16BE(0, at);
}

function writeExecute(buffer: Buffer, start: number): number {
  const at = writeText(buffer, writeHead(buffer, start, EXECUTE, EXECUTE_BYTES), '');
  return buffer.writeInt32BE(0, at);
}

function writeHead(buffer: Buffer, start: number, type: number, size: number): number {
  buffer.writeUInt8(type, start);
  // The length does not count the type.
  return buffer.writeInt32BE(size - 1, start + 1);
}

function writeText(buffer: Buffer, start: number, text: string): number {
  const end = start + buffer.write(text, start, 'utf8');
  return buffer.writeUInt8(0, end);
}
