import { OutsideWorkflowError } from '../../../errors/usage-errors.js';

type Callable = (...args: unknown[]) => unknown;

/** What sends: with `pg` the first; with `postgres` the others, and the `sql` itself as the tag of a template. */
const SENDS: ReadonlySet<PropertyKey> = new Set(['query', 'unsafe', 'file', 'notify', 'savepoint']);

const NOTIFY = 'SELECT pg_notify($1, $2)';

/** With `pg`, what is a query of its own kind: a cursor, a stream, `COPY`. */
interface Submittable {
  readonly submit: Callable;
  callback?: unknown;
  handleError(error: Error, connection: unknown): void;
}

/** With `postgres`, a statement, or a fragment of one: it is sent when its outcome is asked for, if ever. */
interface LazyStatement extends Promise<unknown> {
  /** Sends it, unless that is done. Whatever asks for the outcome calls it. */
  handle: () => unknown;
  reject(error: Error): void;
}

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
    // What the application puts in place of a method that sends (a wrapper that logs) calls what was lent. On the client
    // itself it would refuse whoever has the connection next.
    const replaced = new Map<PropertyKey, unknown>();
    return new Proxy(client as object, {
      get: (target, property) => {
        if (replaced.has(property)) return replaced.get(property);
        const value: unknown = Reflect.get(target, property, target);
        if (property === 'getTransactionStatus' && typeof value === 'function')
          return statusOf(value as Callable, target);
        return SENDS.has(property) && typeof value === 'function'
          ? this.#guarded(property, value as Callable, target)
          : value;
      },
      defineProperty: (target, property, descriptor) => {
        if (!SENDS.has(property)) return Reflect.defineProperty(target, property, descriptor);
        replaced.set(property, descriptor.value);
        return true;
      },
      apply: (target, _self, args: unknown[]) =>
        this.#guardedStatement(Reflect.apply(target as Callable, undefined, args)),
    });
  }

  #guarded(name: PropertyKey, send: Callable, client: object): Callable {
    const sendNow = (args: unknown[]): unknown => Reflect.apply(send, client, args);
    switch (name) {
      case 'query':
        return (...args) => (this.#isOver ? refuseQuery(args, client) : sendNow(args));
      case 'notify':
        // The library's own is sent on another connection of its pool, which has none, and not in the transaction.
        return (channel, payload) => {
          const { unsafe } = client as { readonly unsafe: Callable };
          const made = this.#guardedStatement(unsafe(NOTIFY, [channel, String(payload)]));
          return (made as { execute(): unknown }).execute();
        };
      case 'savepoint':
        return (...args) => (this.#isOver ? refusedPromise() : this.#inSavepoint(sendNow, args));
      default:
        return (...args) => this.#guardedStatement(sendNow(args));
    }
  }

  /** Also one that was made before the end is sent, or not, when somebody asks for its outcome. */
  #guardedStatement(made: unknown): unknown {
    if (!isLazyStatement(made)) return made;
    const send = made.handle.bind(made);
    let isAsked = false;
    made.handle = () => {
      isAsked ||= !this.#isOver;
      if (isAsked) return send();
      made.reject(refusal());
      return heardByNobody(made);
    };
    return made;
  }

  /**
   * The callback gets an `sql` of its own. When it has settled, the library may send a ROLLBACK to the savepoint: not when the
   * transaction is over, where it would abort another one. So it never learns that then.
   */
  #inSavepoint(begin: (args: unknown[]) => unknown, args: unknown[]): Promise<unknown> {
    const outcome = new Promise<unknown>((resolve, reject) => {
      const lend = (work: Callable) => async (inner: unknown) => {
        try {
          const returned = work(this.#lend(inner));
          return await (Array.isArray(returned) ? Promise.all(returned) : returned);
        } finally {
          if (this.#isOver) {
            reject(refusal());
            void heardByNobody(outcome);
            await new Promise(() => undefined);
          }
        }
      };
      const lent = args.map((given) => (typeof given === 'function' ? lend(given as Callable) : given));
      Promise.resolve(begin(lent)).then(resolve, reject);
    });
    return outcome;
  }
}

/** BEGIN may travel with the first statement: until that is answered `pg` knows of no transaction, but whoever asks is in one. */
function statusOf(ask: Callable, client: object): Callable {
  return () => {
    const status: unknown = Reflect.apply(ask, client, []);
    return status === 'I' ? 'T' : status;
  };
}

function isLazyStatement(made: unknown): made is LazyStatement {
  return made instanceof Promise && 'handle' in made && typeof made.handle === 'function' && 'reject' in made;
}

function refusal(): OutsideWorkflowError {
  return new OutsideWorkflowError(
    'The transaction whose client this is has ended, nothing was sent. Await all that the body does before it returns or throws.',
  );
}

/** As `pg` itself refuses on a connection that is gone: who is told depends on how the query is given. */
function refuseQuery(args: readonly unknown[], client: object): unknown {
  const [query] = args as readonly [Partial<Submittable> | string | undefined];
  const callback = args.find((given) => typeof given === 'function') ?? (query as Partial<Submittable>).callback;
  if (isSubmittable(query)) {
    query.callback ??= callback;
    process.nextTick(() => {
      query.handleError(refusal(), Reflect.get(client, 'connection'));
    });
    return query;
  }
  if (typeof callback !== 'function') return refusedPromise();
  process.nextTick(callback, refusal());
  return undefined;
}

function isSubmittable(query: unknown): query is Submittable {
  return typeof query === 'object' && query !== null && 'submit' in query && typeof query.submit === 'function';
}

function refusedPromise(): Promise<never> {
  return heardByNobody(Promise.reject(refusal()));
}

/** A call that nobody awaits must not end the process with all that runs in it. */
function heardByNobody<Refused extends Promise<unknown>>(refused: Refused): Refused {
  // Not `catch`, by which a statement would be asked for its outcome once more.
  void Promise.prototype.then.call(refused, undefined, () => undefined);
  return refused;
}
