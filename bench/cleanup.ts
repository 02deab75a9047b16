/** What has to be ended at the end, in reverse order of its beginning. Node 20 has no `AsyncDisposableStack`. */
export class Cleanup {
  readonly #endings: (() => Promise<void>)[] = [];

  add(end: () => Promise<void>): void {
    this.#endings.push(end);
  }

  /** Ends everything, also when ending one thing fails; the first failure is thrown at the end. */
  async run(): Promise<void> {
    const failures: unknown[] = [];
    for (let end = this.#endings.pop(); end !== undefined; end = this.#endings.pop()) {
      await end().catch((error: unknown) => failures.push(error));
    }
    if (failures.length > 0) throw failures[0];
  }
}
