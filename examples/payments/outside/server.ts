import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import type { Ledger, RequestKind } from './ledger.js';
import { type ChargeRequest, PaymentProvider } from './provider.js';
import type { Trouble, Troubles } from './trouble.js';

/** How late an answer is that comes late: later than the shop waits. */
const SLOW_MS = 1_500;
/** How long a request is on its way that is late. */
const LATE_MS = 3_000;

/** Where a request is: before anything has come of it, or carried out and not answered yet. */
export type Moment = 'arrived' | 'done';

export interface Passing {
  readonly request: RequestKind;
  readonly moment: Moment;
  readonly orderId: string;
  /** Process ID of the worker that asks; undefined: it does not say. */
  readonly worker: number | undefined;
}

export interface OutsideOptions {
  readonly ledger: Ledger;
  readonly troubles: Troubles;
  /** Called, and waited for, at both moments of each request: whoever stages something can hold it there. */
  readonly onPassing?: (passing: Passing) => Promise<void>;
}

interface Request {
  readonly kind: RequestKind;
  readonly orderId: string;
  readonly key: string;
  readonly body: Record<string, unknown>;
}

interface Answer {
  readonly status: number;
  readonly body: unknown;
}

/** The payment provider and the shop's mail service, on one port of 127.0.0.1. */
export class OutsideWorld {
  readonly #ledger: Ledger;
  readonly #troubles: Troubles;
  readonly #onPassing: (passing: Passing) => Promise<void>;
  readonly #provider: PaymentProvider;
  readonly #server: Server;
  readonly #counts = new Map<string, number>();
  #port = 0;

  constructor({ ledger, troubles, onPassing = () => Promise.resolve() }: OutsideOptions) {
    this.#ledger = ledger;
    this.#troubles = troubles;
    this.#onPassing = onPassing;
    this.#provider = new PaymentProvider(ledger);
    this.#server = createServer((incoming, response) => {
      this.#handle(incoming, response).catch(() => {
        response.destroy();
      });
    });
  }

  get url(): string {
    return `http://127.0.0.1:${String(this.#port)}`;
  }

  async open(): Promise<void> {
    this.#server.listen(this.#port, '127.0.0.1');
    await once(this.#server, 'listening');
    this.#port = (this.#server.address() as AddressInfo).port;
  }

  /** Whoever connects from now on is refused; what is under way goes on. */
  shut(): void {
    this.#server.close();
    this.#server.closeIdleConnections();
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  async #handle(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const request = await read(incoming);
    if (request === undefined) {
      send(response, { status: 404, body: { error: 'no such page' } });
      return;
    }
    const passing = { request: request.kind, orderId: request.orderId, worker: workerOf(incoming) };
    await this.#onPassing({ ...passing, moment: 'arrived' });
    const trouble = this.#nextTrouble(request);
    // Without an answer the connection stays open until the caller gives up.
    if (trouble === 'lost') return;
    if (trouble === 'error') {
      send(response, { status: 500, body: { error: 'something went wrong' } });
      return;
    }
    if (trouble === 'slow') await this.#delay(request);
    if (trouble === 'late') await pause(LATE_MS);
    const answer = this.#carryOut(request);
    await this.#onPassing({ ...passing, moment: 'done' });
    answerWith(response, answer, trouble);
  }

  #nextTrouble({ kind, orderId }: Request): Trouble | undefined {
    const counter = `${kind} ${orderId}`;
    const nth = (this.#counts.get(counter) ?? 0) + 1;
    this.#counts.set(counter, nth);
    const trouble = this.#troubles(kind, orderId, nth);
    if (trouble !== undefined) this.#ledger.write({ what: 'trouble', orderId, request: kind, trouble });
    return trouble;
  }

  /** Meanwhile a lookup of a charge says that it is pending. */
  async #delay({ kind, key }: Request): Promise<void> {
    const forget = kind === 'charge' ? this.#provider.expect(key) : undefined;
    await pause(SLOW_MS);
    forget?.();
  }

  #carryOut({ kind, orderId, key, body }: Request): Answer {
    switch (kind) {
      case 'charge': {
        const answer = this.#provider.charge(key, body as unknown as ChargeRequest);
        return { status: { charged: 201, declined: 402, closed: 409 }[answer.kind], body: answer };
      }
      case 'lookup':
        return { status: 200, body: this.#provider.lookup(key) };
      case 'refund': {
        const refundId = this.#provider.refund(key, String(body['chargeId']));
        return refundId === undefined
          ? { status: 404, body: { error: 'no such charge' } }
          : { status: 201, body: { refundId } };
      }
      case 'close':
        this.#provider.close(orderId);
        return { status: 200, body: {} };
      case 'notify':
        this.#ledger.write({ what: 'notified', orderId, eventId: key });
        return { status: 200, body: {} };
    }
  }
}

const KINDS: Readonly<Record<string, RequestKind>> = {
  'POST /charges': 'charge',
  'GET /charges': 'lookup',
  'POST /refunds': 'refund',
  'POST /closed-orders': 'close',
  'POST /mail/order-confirmed': 'notify',
};

async function read(incoming: IncomingMessage): Promise<Request | undefined> {
  const url = new URL(incoming.url ?? '/', 'http://outside');
  const kind = KINDS[`${incoming.method ?? ''} ${url.pathname}`];
  const sent = await text(incoming);
  if (kind === undefined) return undefined;
  const body = sent === '' ? {} : (JSON.parse(sent) as Record<string, unknown>);
  // An event carries its order in its payload.
  const { orderId } = { ...body, ...(body['payload'] as object | undefined) } as { readonly orderId?: unknown };
  return {
    kind,
    orderId: url.searchParams.get('order') ?? String(orderId),
    // Of an event it is the event's ID.
    key: String(incoming.headers['idempotency-key']),
    body,
  };
}

/** `shop/<process ID>` */
function workerOf({ headers }: IncomingMessage): number | undefined {
  const [, worker] = /^shop\/(\d+)$/.exec(headers['user-agent'] ?? '') ?? [];
  return worker === undefined ? undefined : Number(worker);
}

function answerWith(response: ServerResponse, answer: Answer, trouble: Trouble | undefined): void {
  switch (trouble) {
    case 'reply-lost':
      response.destroy();
      return;
    case 'no-reply':
      return;
    case 'error-after':
      send(response, { status: 500, body: { error: 'something went wrong' } });
      return;
    default:
      send(response, answer);
  }
}

function send(response: ServerResponse, { status, body }: Answer): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}
