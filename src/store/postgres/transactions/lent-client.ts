import { OutsideWorkflowError } from '../../../errors/usage-errors.js';

type Callable = (...args: unknown[]) => unknown;

/** What sends: with `pg` the first; with `postgres` the others, and the `sql` itself as the tag of a template. */
const SENDS: ReadonlySet<PropertyKey> = new Set(['query', 'unsafe', 'file', 'notify', 'savepoint']);

/**
 * The client of a connection that goes back to a pool when the transaction is over. A body may leave something behind that still has it: a
 * branch of a `Promise.all` of which another one has failed, a call that nobody awaited. What that sends must not become part of the
 * transaction that has the connection next, nor take effect outside of any.
 */
export class LentClient {
  readonly client: unknown;
  #isOver = false;

  /** @param client Of `pg`, or the `sql` of a transaction of `postgres`. */
  constructor(client: unknown) {
    this.client = this.#lend(client);
  }

  /** Whatever is to be sent from now on is refused. */
  takeBack(): void {
    this.#isOver = true;
  }

  #lend(client: unknown): unknown {
    return new Proxy(client as object, {
      get: (target, property) => {
        const value: unknown = Reflect.get(target, property, target);
        return SENDS.has(property) && typeof value === 'function'
          ? this.#guarded(property, value as Callable, target)
          : value;
      },
      apply: (target, _self, args: unknown[]) =>
        this.#isOver && isTemplate(args[0]) ? refusedLater() : Reflect.apply(target as Callable, undefined, args),
    });
  }

  #guarded(name: PropertyKey, send: Callable, client: object): Callable {
    return (...args) => {
      if (this.#isOver) return name === 'query' ? refused() : refusedLater();
      return Reflect.apply(send, client, name === 'savepoint' ? args.map((given) => this.#lendingTo(given)) : args);
    };
  }

  /** The callback of a savepoint gets an `sql` of its own. */
  #lendingTo(given: unknown): unknown {
    return typeof given === 'function' ? (inner: unknown) => (given as Callable)(this.#lend(inner)) : given;
  }
}

function isTemplate(first: unknown): boolean {
  return Array.isArray(first) && 'raw' in first;
}

function refused(): Promise<never> {
  return Promise.reject(
    new OutsideWorkflowError(
      'The transaction whose client this is has ended, nothing was sent. Await all that the body does before it returns or throws.',
    ),
  );
}

/** Of `postgres`, which sends what is waited for: what never is, such as a fragment of a query, fails for nobody. */
function refusedLater(): Promise<never> {
  const answer = refused();
  answer.catch(() => undefined);
  return answer;
}
