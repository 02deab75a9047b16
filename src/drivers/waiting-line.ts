/** Those who wait for something, in the order in which they came; who is urgent goes first. */
export class WaitingLine<Waiter> {
  readonly #urgent: Waiter[] = [];
  readonly #others: Waiter[] = [];

  push(waiter: Waiter, isUrgent: boolean): void {
    (isUrgent ? this.#urgent : this.#others).push(waiter);
  }

  /** Puts one who is not urgent before the others who are not: it had its turn, and gave it away. */
  putBack(waiter: Waiter): void {
    this.#others.unshift(waiter);
  }

  shift(): Waiter | undefined {
    return this.#urgent.shift() ?? this.#others.shift();
  }

  shiftUrgent(): Waiter | undefined {
    return this.#urgent.shift();
  }

  get hasUrgent(): boolean {
    return this.#urgent.length > 0;
  }

  /** Takes one out that gave up; nothing happens where it does not wait any more. */
  remove(waiter: Waiter): void {
    for (const line of [this.#urgent, this.#others]) {
      const index = line.indexOf(waiter);
      if (index !== -1) line.splice(index, 1);
    }
  }

  /** All that waited, in order; nobody does after it. */
  clear(): Waiter[] {
    return [...this.#urgent.splice(0), ...this.#others.splice(0)];
  }
}
