import { randomFillSync } from 'node:crypto';

/** Random bytes are fetched for this many IDs at a time: for a single one that takes 1.2 µs, as long as all the rest. */
const IDS_PER_FETCH = 128;
const ID_BYTES = 16;
const pool = Buffer.alloc(IDS_PER_FETCH * ID_BYTES);
let next = pool.length;

/** A UUIDv7 (RFC 9562): sorts by time, so that new rows land together in the index. */
export function uuidV7(): string {
  if (next === pool.length) {
    randomFillSync(pool);
    next = 0;
  }
  const bytes = pool.subarray(next, next + ID_BYTES);
  next += ID_BYTES;
  // The time only makes IDs sort; nothing is decided by it.
  bytes.writeUIntBE(Date.now(), 0, 6);
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x70, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  const hex = bytes.toString('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}
