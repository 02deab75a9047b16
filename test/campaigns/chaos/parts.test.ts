import { expect, test } from 'vitest';
import type { Verdict } from '../support/verdict.js';
import { joinParts } from './parts.js';

const part = (is: Verdict['is'], says: string, hits: Record<string, number> = {}) => ({
  verdicts: [{ judge: 'results', is, says } as const],
  hits,
  impossible: {},
});

test('a violation in one part is one of the whole run, and it is said in which', () => {
  const joined = joinParts([part('green', 'a'), part('red', 'b'), part('void', 'c')]);
  expect(joined.verdicts).toEqual([{ judge: 'results', is: 'red', says: 'part 2 of 3: b' }]);
});

test('a part in which too little happened shows nothing for the whole run', () => {
  const joined = joinParts([part('void', 'a'), part('green', 'b')]);
  expect(joined.verdicts).toEqual([{ judge: 'results', is: 'void', says: 'part 1 of 2: a' }]);
});

test('hits of all parts count', () => {
  const joined = joinParts([part('green', 'a', { kill: 3, pause: 1 }), part('green', 'b', { kill: 4 })]);
  expect(joined.hits).toEqual({ kill: 7, pause: 1 });
  expect(joined.verdicts[0]?.says).toBe('part 2 of 2: b');
});

test('a run of one part is that part', () => {
  expect(joinParts([part('green', 'a')]).verdicts).toEqual([{ judge: 'results', is: 'green', says: 'a' }]);
});
