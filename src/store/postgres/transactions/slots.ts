/** So many at a time; the others wait in the order of their calls. */
export class Slots {
  readonly #waiting: (() => void)[] = [];
  #free: number;

  constructor(count: number) {
    this.#free = count;
  }

  readonly #release = (): void => {
    const next = this.#waiting.shift();
    if (next === undefined) this.#free += 1;
    else next();
  };

  /** Returns how to give it back, which is to be called once; or a promise of that, where none is free. */
  take(): (() => void) | Promise<() => void> {
    if (this.#free > 0) {
      this.#free -= 1;
      return this.#release;
    }
    return new Promise((resolve) => {
      this.#waiting.push(() => {
        resolve(this.#release);
      });
    });
  }
}
