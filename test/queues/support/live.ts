import { defineWorkflow, runStep } from '../../../src/index.js';

/** Counts what runs at the same time, as the bodies themselves see it. */
export class Live {
  readonly order: string[] = [];
  readonly startedAt: number[] = [];
  readonly most = new Map<string, number>();
  readonly #now = new Map<string, number>();

  enter(...groups: readonly string[]): void {
    for (const group of groups) {
      const count = (this.#now.get(group) ?? 0) + 1;
      this.#now.set(group, count);
      this.most.set(group, Math.max(count, this.most.get(group) ?? 0));
    }
  }

  leave(...groups: readonly string[]): void {
    for (const group of groups) this.#now.set(group, (this.#now.get(group) ?? 0) - 1);
  }
}

/** A workflow whose step takes `ms` milliseconds; it counts under `all` and under its key. */
export function worker(live: Live, name = 'work') {
  return defineWorkflow(name, (id: string, key: string, ms: number) =>
    runStep('body', async () => {
      live.order.push(id);
      live.startedAt.push(performance.now());
      live.enter('all', key);
      await new Promise((resolve) => setTimeout(resolve, ms));
      live.leave('all', key);
      return id;
    }),
  );
}

/** Workflow IDs that sort in the order in which they are made. */
export function ids(prefix: string, count: number): string[] {
  return Array.from({ length: count }, (_, index) => `${prefix}-${String(index).padStart(5, '0')}`);
}
