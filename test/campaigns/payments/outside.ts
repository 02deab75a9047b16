import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import type { FromOutside, OutsideProcessOptions, Tally, ToOutside } from './messages.js';

/** The process of the outside world, as the campaign handles it. */
export class Outside {
  readonly #child: ChildProcess;
  readonly url: string;

  private constructor(child: ChildProcess, url: string) {
    this.#child = child;
    this.url = url;
  }

  static async launch(program: string, options: OutsideProcessOptions): Promise<Outside> {
    const child = fork(program, [JSON.stringify(options)]);
    const [first] = (await once(child, 'message')) as [FromOutside];
    if (first.what !== 'listening') throw new Error('The outside world does not listen.');
    return new Outside(child, first.url);
  }

  onHeld(callback: (held: Extract<FromOutside, { what: 'held' }>) => void): void {
    this.#child.on('message', (message: FromOutside) => {
      if (message.what === 'held') callback(message);
    });
  }

  tell(message: ToOutside): void {
    this.#child.send(message, () => undefined);
  }

  async report(): Promise<Tally> {
    const reported = new Promise<Tally>((resolve) => {
      const onMessage = (message: FromOutside): void => {
        if (message.what !== 'report') return;
        this.#child.off('message', onMessage);
        resolve(message.tally);
      };
      this.#child.on('message', onMessage);
    });
    this.tell({ do: 'report' });
    return reported;
  }

  async end(): Promise<void> {
    if (this.#child.exitCode !== null) return;
    const exited = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await exited;
  }
}
