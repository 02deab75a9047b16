import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A request that a receiver has got, once its body is complete. */
export interface Received {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  /** The event as it was sent. */
  readonly event: {
    readonly id: string;
    readonly topic: string;
    readonly key: string | null;
    readonly payload: unknown;
  };
}

/** How a receiver answers; `undefined`: never. */
export type Answer =
  { readonly status: number; readonly headers?: Record<string, string>; readonly body?: string } | undefined;

export interface Receiver {
  readonly url: string;
  readonly received: Received[];
  /** How it answers from now on. */
  answer: (request: Received, nth: number) => Answer | Promise<Answer>;
  close(): Promise<void>;
}

/** The outside world: a server of HTTP that keeps a ledger of what reached it, in the order of arrival. */
export async function startReceiver(): Promise<Receiver> {
  const received: Received[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString();
      const entry: Received = { headers: request.headers, body, event: JSON.parse(body) as Received['event'] };
      received.push(entry);
      void (async () => {
        const answer = await receiver.answer(entry, received.length);
        if (answer !== undefined) response.writeHead(answer.status, answer.headers).end(answer.body);
      })();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const receiver: Receiver = {
    url: `http://127.0.0.1:${String((server.address() as AddressInfo).port)}/hooks`,
    received,
    answer: () => ({ status: 204 }),
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => {
          resolve();
        });
      }),
  };
  return receiver;
}
