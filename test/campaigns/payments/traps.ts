import { writeSync } from 'node:fs';
import pg from 'pg';
import { STRUCK_PIPE, type ToWorker } from './messages.js';
import type { Trap } from './points.js';
import { requestName, statementOf, StatementSites } from './sites.js';

/**
 * Strikes its own process down at the point for which it is armed. Whatever would come next in this process does not: a signal that a
 * process sends to itself is delivered before the call returns.
 */
export class Traps {
  #set: readonly Trap[] = [];

  obey({ traps }: ToWorker): void {
    this.#set = traps;
  }

  /** Sets traps around each request that the worker makes, and each statement that it sends. */
  install(): void {
    this.#aroundFetch();
    this.#aroundStatements();
  }

  #pass(site: string | undefined, side: 'before' | 'after'): void {
    if (site === undefined) return;
    const trap = this.#set.find(({ point }) => point === `${site} ${side}`);
    if (trap === undefined) return;
    this.#set = [];
    strike(trap);
  }

  #aroundFetch(): void {
    const original = globalThis.fetch;
    globalThis.fetch = async (input, init) => {
      const site = requestName(init?.method ?? 'GET', input instanceof Request ? input.url : String(input));
      this.#pass(site, 'before');
      const response = await original(input, init);
      this.#pass(site, 'after');
      return response;
    };
  }

  #aroundStatements(): void {
    const pass = this.#pass.bind(this);
    const sites = new StatementSites();
    // Holdfast and the application take their connections from the same library.
    const prototype = pg.Client.prototype as unknown as { query: (...args: unknown[]) => unknown };
    const original = prototype.query;
    prototype.query = function (this: object, ...args: unknown[]) {
      const site = sites.siteOf(this, statementOf(args[0], args[1]));
      pass(site, 'before');
      const callback = args.at(-1);
      if (site === undefined || typeof callback !== 'function') return original.apply(this, args);
      return original.apply(this, [
        ...args.slice(0, -1),
        (...answer: unknown[]) => {
          pass(site, 'after');
          (callback as (...answer: unknown[]) => void)(...answer);
        },
      ]);
    };
  }
}

function strike(trap: Trap): void {
  writeSync(STRUCK_PIPE, `${JSON.stringify(trap)}\n`);
  process.kill(process.pid, trap.blow === 'kill' ? 'SIGKILL' : 'SIGSTOP');
}
