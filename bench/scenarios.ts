/** One shape of load: how many workflows are in flight at once, and how many steps each of them has. */
export interface Scenario {
  readonly name: string;
  readonly steps: number;
  readonly concurrency: number;
  /**
   * How many times the usual window. Workflows that start together go on in step, so that starts, steps and ends come in
   * waves; a window has to hold several of them. At 500 the peer needs five seconds for one.
   */
  readonly windows: number;
  /** The least ratio to reach, Holdfast's steps/s to the other's, where the project has set itself one. */
  readonly targets: { readonly dbos?: number; readonly bareCheckpoint?: number };
}

export const SCENARIOS: readonly Scenario[] = [
  { name: 'steps10-c1', steps: 10, concurrency: 1, windows: 1, targets: { dbos: 2.5, bareCheckpoint: 0.8 } },
  { name: 'steps10-c50', steps: 10, concurrency: 50, windows: 1, targets: { dbos: 15 } },
  { name: 'steps10-c500', steps: 10, concurrency: 500, windows: 2, targets: { dbos: 30 } },
  { name: 'steps1-c50', steps: 1, concurrency: 50, windows: 1, targets: {} },
];
