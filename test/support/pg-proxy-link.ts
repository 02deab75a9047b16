import type { Socket } from 'node:net';
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises';

/** A statement on its way to the server. A prepared one is shown with the text that it was parsed from. */
export interface ProxyStatement {
  readonly sql: string;
  /** Name of the server-side prepared statement; empty for an unnamed one and for the simple protocol. */
  readonly statementName: string;
  readonly connectionId: number;
}

/** What happens to a statement that matches. */
export type ProxyFault =
  /** The server executes it; its reply is swallowed, and the connection is cut when the server is done (`keep`: it stays, and carries nothing any more). */
  | { readonly do: 'drop-reply'; readonly reset?: boolean; readonly keep?: boolean }
  /** The connection is cut; the server never sees the statement. */
  | { readonly do: 'cut-before'; readonly reset?: boolean }
  /** The server executes what stands before the statement in the same packet; then the connection is cut. */
  | { readonly do: 'cut-inside'; readonly reset?: boolean }
  /** The connection stays open and carries nothing any more. The statement itself still gets through if so asked. */
  | { readonly do: 'black-hole'; readonly afterForwarding?: boolean }
  /** The statement, and what follows it on the connection, is held back. */
  | { readonly do: 'delay'; readonly delayMs: number }
  /** The same, until then. */
  | { readonly do: 'hold'; readonly until: Promise<unknown> };

/** A statement that was hit. */
export interface ProxyHit extends ProxyStatement {
  /** Of a dropped reply: the server answered with an error, or refused the write to somebody who has lost what it is about. */
  readonly failed: boolean;
}

/** A fault that waits for its statement, as the proxy keeps it. */
export interface Arming {
  readonly fault: ProxyFault;
  readonly matches: (statement: ProxyStatement) => boolean;
  remaining: number;
  hits: number;
  readonly report: (hit: ProxyHit) => void;
}

const FLUSH = Buffer.from([0x48, 0, 0, 0, 4]);
const SSL_REQUEST = 80877103;
const GSS_REQUEST = 80877104;
const CANCEL_REQUEST = 80877102;

/** Types of messages of the server. */
const READY = 'Z'.charCodeAt(0);
const ERROR = 'E'.charCodeAt(0);
const DATA_ROW = 'D'.charCodeAt(0);
/** How the protocol's functions answer who has lost a workflow: a column, with its length, or a member of a JSON text. */
const REFUSALS = ['\0\0\0\x04lost', '"lost"'];

/** What a link asks of the proxy, and tells it. */
export interface LinkEvents {
  readonly onStatement: (statement: ProxyStatement) => Arming | undefined;
  readonly onCancelRequest: () => void;
  readonly onFault: (arming: Arming, hit: ProxyHit) => void;
  /** The server refuses a write, since another one owns the workflow. */
  readonly onRefusal: () => void;
  readonly fragmentBytes: () => number | undefined;
  readonly onClosed: () => void;
}

/** One client's connection and its counterpart on the server's side. */
export class ProxyLink {
  readonly #id: number;
  readonly #client: Socket;
  readonly #server: Socket;
  readonly #events: LinkEvents;
  readonly #prepared = new Map<string, string>();
  readonly #portals = new Map<string, ProxyStatement>();
  #fromClient = Buffer.alloc(0);
  #fromServer = Buffer.alloc(0);
  #toServer: Promise<void> = Promise.resolve();
  #toClient: Promise<void> = Promise.resolve();
  /** Messages that do nothing yet: until Sync, Flush or a simple query, the server need not see them. */
  #batch: Buffer[] = [];
  #batchStatements: { readonly statement: ProxyStatement; readonly end: number }[] = [];
  #isStarted = false;
  #isBlackHole = false;
  #isClosed = false;
  /** ReadyForQuery messages that the server still owes, the one of the start included. */
  #owed = 1;
  /** Once set, replies are swallowed after that many more ReadyForQuery messages; then the link is cut. */
  #swallow: { after: number; arming: Arming; statement: ProxyStatement; reset: boolean; failed: boolean } | undefined;

  constructor(id: number, client: Socket, server: Socket, events: LinkEvents) {
    this.#id = id;
    this.#client = client;
    this.#server = server;
    this.#events = events;
    server.on('error', () => undefined);
    client.on('data', (data) => {
      if (this.#isBlackHole) return;
      this.#fromClient = Buffer.concat([this.#fromClient, data]);
      this.#readClient();
    });
    server.on('data', (data) => {
      if (this.#isBlackHole) return;
      this.#fromServer = Buffer.concat([this.#fromServer, data]);
      this.#readServer();
    });
    // The end of one side is passed on when all that came before it has been.
    client.on('end', () => void this.#toServer.then(() => this.cut(false)));
    server.on('end', () => {
      if (!this.#isBlackHole) void this.#toClient.then(() => this.cut(false));
    });
    client.on('close', () => {
      this.cut(false);
    });
    server.on('close', () => {
      if (!this.#isBlackHole) void this.#toClient.then(() => this.cut(false));
    });
  }

  cut(reset: boolean): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const socket of [this.#client, this.#server]) {
      if (reset && !socket.destroyed) socket.resetAndDestroy();
      else socket.destroy();
    }
    this.#events.onClosed();
  }

  blackHole(): void {
    this.#isBlackHole = true;
  }

  #readClient(): void {
    while (!this.#isStarted) {
      if (!this.#readStart()) return;
    }
    for (;;) {
      const message = takeMessage(this.#fromClient);
      if (message === undefined) return;
      this.#fromClient = this.#fromClient.subarray(message.length);
      this.#clientMessage(message);
    }
  }

  /** Reads one of the messages without a type that open a connection. */
  #readStart(): boolean {
    const data = this.#fromClient;
    if (data.length < 8 || data.length < data.readInt32BE(0)) return false;
    const message = data.subarray(0, data.readInt32BE(0));
    const code = data.readInt32BE(4);
    this.#fromClient = data.subarray(message.length);
    if (code === SSL_REQUEST || code === GSS_REQUEST) {
      this.#client.write('N');
      return true;
    }
    if (code === CANCEL_REQUEST) this.#events.onCancelRequest();
    this.#isStarted = true;
    this.#forward([message], undefined, undefined);
    return true;
  }

  #clientMessage(message: Buffer): void {
    this.#batch.push(message);
    const type = String.fromCharCode(message[0] ?? 0);
    switch (type) {
      case 'P': {
        const { value: name, next } = readText(message, 5);
        this.#prepared.set(name, readText(message, next).value);
        return;
      }
      case 'B': {
        const { value: portal, next } = readText(message, 5);
        const { value: statementName } = readText(message, next);
        const sql = this.#prepared.get(statementName) ?? '';
        this.#portals.set(portal, { sql, statementName, connectionId: this.#id });
        return;
      }
      case 'E': {
        const statement = this.#portals.get(readText(message, 5).value);
        if (statement !== undefined) this.#batchStatements.push({ statement, end: this.#batch.length });
        return;
      }
      case 'D':
      case 'C':
        return;
      case 'Q':
        this.#batchStatements.push({
          statement: { sql: readText(message, 5).value, statementName: '', connectionId: this.#id },
          end: this.#batch.length,
        });
        break;
    }
    this.#sendBatch(type === 'Q' || type === 'S');
  }

  #sendBatch(endsWithReady: boolean): void {
    const batch = this.#batch.splice(0);
    let hit: { arming: Arming; statement: ProxyStatement; earlier: number } | undefined;
    let earlier = 0;
    for (const { statement, end } of this.#batchStatements.splice(0)) {
      const arming = this.#events.onStatement(statement);
      if (arming !== undefined) hit ??= { arming, statement, earlier };
      earlier = end;
    }
    const repliesBefore = this.#owed;
    if (endsWithReady) this.#owed++;
    if (hit?.arming.fault.do === 'drop-reply') {
      this.#swallow = { ...hit, after: repliesBefore, reset: hit.arming.fault.reset ?? false, failed: false };
    }
    const isInside = hit?.arming.fault.do === 'cut-inside';
    this.#forward(isInside ? batch.slice(0, hit?.earlier) : batch, hit?.arming, hit?.statement);
  }

  #forward(messages: Buffer[], arming: Arming | undefined, statement: ProxyStatement | undefined): void {
    this.#toServer = this.#toServer.then(async () => {
      if (this.#isClosed || this.#isBlackHole) return;
      const fault = arming?.fault;
      if (arming !== undefined && statement !== undefined && fault?.do !== 'drop-reply') {
        this.#events.onFault(arming, { ...statement, failed: false });
      }
      if (fault?.do === 'cut-before') {
        this.cut(fault.reset ?? false);
        return;
      }
      if (fault?.do === 'black-hole') {
        this.blackHole();
        if (fault.afterForwarding !== true) return;
      }
      if (fault?.do === 'cut-inside') {
        // What it says to Flush it says when it has executed what stands before.
        this.#server.once('data', () => {
          this.cut(fault.reset ?? false);
        });
        messages.push(FLUSH);
      }
      if (fault?.do === 'delay') await pause(fault.delayMs);
      if (fault?.do === 'hold') await fault.until;
      await this.#write(this.#server, Buffer.concat(messages));
    });
  }

  #readServer(): void {
    const replies: Buffer[] = [];
    for (;;) {
      const message = takeMessage(this.#fromServer);
      if (message === undefined) break;
      this.#fromServer = this.#fromServer.subarray(message.length);
      const swallow = this.#swallow;
      const isReady = message[0] === READY;
      if (isReady) this.#owed--;
      const isRefusal = message[0] === DATA_ROW && REFUSALS.some((text) => message.includes(text));
      if (isRefusal) this.#events.onRefusal();
      if (swallow?.after === 0 && (isRefusal || message[0] === ERROR)) swallow.failed = true;
      if (swallow === undefined || swallow.after > 0) replies.push(message);
      if (!isReady || swallow === undefined) continue;
      if (swallow.after-- > 0) continue;
      const { arming, statement, failed, reset } = swallow;
      if (arming.fault.do === 'drop-reply' && arming.fault.keep === true) this.blackHole();
      void this.#toClient.then(() => {
        this.#events.onFault(arming, { ...statement, failed });
        if (!this.#isBlackHole) this.cut(reset);
      });
      break;
    }
    if (replies.length === 0) return;
    this.#toClient = this.#toClient.then(() => this.#write(this.#client, Buffer.concat(replies)));
  }

  async #write(socket: Socket, data: Buffer): Promise<void> {
    const maxBytes = this.#events.fragmentBytes();
    if (maxBytes === undefined) {
      if (!socket.destroyed) socket.write(data);
      return;
    }
    for (let from = 0; from < data.length && !socket.destroyed;) {
      const to = Math.min(data.length, from + 1 + Math.floor(Math.random() * maxBytes));
      socket.write(data.subarray(from, to));
      from = to;
      await nextTurn();
    }
  }
}

/** The first whole message (type, length, body) in `data`. */
function takeMessage(data: Buffer): Buffer | undefined {
  if (data.length < 5) return undefined;
  const length = 1 + data.readInt32BE(1);
  return data.length < length ? undefined : data.subarray(0, length);
}

/** Reads a text that ends with a zero byte. */
function readText(message: Buffer, start: number): { value: string; next: number } {
  const end = message.indexOf(0, start);
  return { value: message.toString('utf8', start, end), next: end + 1 };
}
