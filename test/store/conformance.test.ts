import { afterAll, beforeAll, beforeEach, describe } from 'vitest';
import { Bench } from './conformance/bench.js';
import { describeClaims } from './conformance/claims.js';
import { describeControl } from './conformance/control.js';
import { describeOutbox } from './conformance/outbox.js';
import { describeWaiting } from './conformance/waiting.js';
import { describeWrites } from './conformance/writes.js';
import { STORE_KINDS } from './support/store-bed.js';

describe.each(STORE_KINDS)('the store: $label', (kind) => {
  let bench: Bench;
  beforeAll(async () => {
    bench = new Bench(await kind.open());
  });
  beforeEach(() => bench.begin());
  afterAll(() => bench.bed.close());

  const current = (): Bench => bench;
  describe('writes', () => describeWrites(current));
  describe('waiting', () => describeWaiting(current));
  describe('claims', () => describeClaims(current));
  describe('control', () => describeControl(current));
  describe('outbox', () => describeOutbox(current));
});
