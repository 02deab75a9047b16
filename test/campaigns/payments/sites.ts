import type { RequestKind } from '../../../examples/payments/outside/ledger.js';

// Which point of an order's life a request or a statement belongs to.

const REQUESTS: Readonly<Record<string, RequestKind>> = {
  'POST /charges': 'charge',
  'GET /charges': 'lookup',
  'POST /refunds': 'refund',
  'POST /closed-orders': 'close',
  'POST /mail/order-confirmed': 'notify',
};

export function requestName(method: string, url: string): RequestKind | undefined {
  return REQUESTS[`${method} ${new URL(url).pathname}`];
}

/** What can be seen of a statement that is sent. */
export interface Statement {
  readonly text: string;
  readonly values: readonly unknown[];
}

interface StatementSite {
  readonly site: string;
  readonly calls: RegExp;
  /** A step's name or kind; undefined: whatever it is about. */
  readonly about: string | undefined;
}

/** The first that fits. A compensation has the name of its step. */
const STATEMENTS: readonly StatementSite[] = [
  { site: 'intent', calls: /\brecord_intent/, about: 'charge' },
  { site: 'compensation', calls: /\b(?:checkpoint|conclude)_/, about: 'compensation' },
  { site: 'reserve', calls: /\b(?:checkpoint|conclude)_/, about: 'reserve' },
  { site: 'confirm', calls: /\b(?:checkpoint|conclude)_/, about: 'confirm' },
  { site: 'record', calls: /\b(?:checkpoint|conclude)_/, about: 'charge' },
  { site: 'relay', calls: /\bsettle_events/, about: undefined },
];

/** Looks through the statements of each connection: what a transaction is about is known at its COMMIT from what came before. */
export class StatementSites {
  readonly #open = new WeakMap<object, string>();

  siteOf(connection: object, { text, values }: Statement): string | undefined {
    if (text === 'COMMIT') {
      const site = this.#open.get(connection);
      this.#open.delete(connection);
      return site;
    }
    const found = STATEMENTS.find(({ calls, about }) => calls.test(text) && isAbout(values, about));
    if (found === undefined) return undefined;
    // conclude_transaction is sent together with COMMIT.
    if (!text.includes('checkpoint_transaction')) return found.site;
    this.#open.set(connection, found.site);
    return undefined;
  }
}

/** Values are texts, or arrays that were written as texts. */
function isAbout(values: readonly unknown[], word: string | undefined): boolean {
  if (word === undefined) return true;
  const whole = new RegExp(`(?<![\\w-])${word}(?![\\w-])`);
  return values.some((value) => typeof value === 'string' && whole.test(value));
}

/** What `query` of `pg` is called with. */
export function statementOf(first: unknown, second: unknown): Statement {
  const { text, values } =
    typeof first === 'string' ? { text: first, values: second } : (first as { text?: unknown; values?: unknown });
  return { text: typeof text === 'string' ? text : '', values: Array.isArray(values) ? values : [] };
}
