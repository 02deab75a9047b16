import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { FromOutsideProcess, OutsideProcessOptions, ToOutsideProcess } from '../outside/process.js';
import type { Passing } from '../outside/server.js';

const PROGRAM = fileURLToPath(new URL('../outside/process.ts', import.meta.url));

/** A request that the demonstration holds where it is. */
export interface HeldRequest {
  readonly passing: Passing;
  letGo(): void;
}

/** The process of the outside world, seen from the demonstration. Requests can be held in it, at one of their two moments. */
export class OutsideProcess {
  readonly url: string;
  readonly #child: ChildProcess;
  readonly #holds = new Set<(held: HeldRequest) => boolean>();

  private constructor(child: ChildProcess, url: string) {
    this.#child = child;
    this.url = url;
    child.on('message', (message: FromOutsideProcess) => {
      if (message.what === 'passing') this.#pass(message.number, message.passing);
    });
  }

  static async launch(options: OutsideProcessOptions): Promise<OutsideProcess> {
    const child = fork(PROGRAM, [JSON.stringify(options)], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
    const [first] = (await once(child, 'message')) as [FromOutsideProcess];
    if (first.what !== 'listening') throw new Error('The outside world is not there.');
    return new OutsideProcess(child, first.url);
  }

  /** Holds every request like this one from now on. */
  hold(like: Pick<Passing, 'request' | 'moment' | 'orderId'>): Hold {
    const held: HeldRequest[] = [];
    let arrive: (first: HeldRequest) => void = () => undefined;
    const first = new Promise<HeldRequest>((resolve) => {
      arrive = resolve;
    });
    const take = (request: HeldRequest): boolean => {
      const { passing } = request;
      if (passing.request !== like.request || passing.moment !== like.moment || passing.orderId !== like.orderId) {
        return false;
      }
      held.push(request);
      arrive(request);
      return true;
    };
    this.#holds.add(take);
    return {
      first,
      end: () => {
        this.#holds.delete(take);
        for (const request of held) request.letGo();
      },
    };
  }

  end(): void {
    this.#child.kill();
  }

  #pass(number: number, passing: Passing): void {
    const letGo = (): void => {
      this.#child.send({ goOn: number } satisfies ToOutsideProcess, () => undefined);
    };
    if (![...this.#holds].some((take) => take({ passing, letGo }))) letGo();
  }
}

export interface Hold {
  /** The first request that was held. */
  readonly first: Promise<HeldRequest>;
  /** Holds no more, and lets go what is held. */
  end(): void;
}
