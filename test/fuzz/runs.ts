/** How many inputs each property is tried with: few in the suite, and as many as `HOLDFAST_TEST_FUZZ` says for a long run. */
export function fuzzRuns(inTheSuite: number): { readonly numRuns: number } {
  const asked = process.env['HOLDFAST_TEST_FUZZ'];
  return { numRuns: asked === undefined ? inTheSuite : Number(asked) };
}

/** A long run needs its time, in milliseconds. */
export const FUZZ_TIMEOUT_MS = process.env['HOLDFAST_TEST_FUZZ'] === undefined ? 60_000 : 3_600_000;
