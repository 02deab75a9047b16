import type { ChildProcess } from 'node:child_process';

import type { Message } from './protocol.js';

type MessageOf<Type extends Message['type']> = Extract<Message, { type: Type }>;

/** A child's messages in their order. They are kept until asked for: two can arrive before anyone has been woken by the first. */
export class Inbox {
  readonly #messages: Message[] = [];
  #ended: string | undefined;
  #wake: (() => void) | undefined;

  constructor(child: ChildProcess) {
    child.on('message', (message) => {
      // The child is one of ours, and says nothing but what the protocol knows.
      this.#messages.push(message as Message);
      this.#wake?.();
    });
    child.once('exit', (code, signal) => {
      this.#ended = signal ?? `exit code ${String(code)}`;
      this.#wake?.();
    });
  }

  /**
   * The next message.
   * @throws Error when it is not of this type, or when the child ended.
   */
  async next<Type extends Message['type']>(type: Type): Promise<MessageOf<Type>> {
    for (;;) {
      const message = this.#messages.shift();
      if (message !== undefined) {
        if (isOfType(message, type)) return message;
        throw new Error(
          message.type === 'failed'
            ? `A worker failed: ${message.reason}`
            : `A worker said "${message.type}", not "${type}".`,
        );
      }
      if (this.#ended !== undefined) throw new Error(`A worker ended (${this.#ended}) before it said "${type}".`);
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}

function isOfType<Type extends Message['type']>(message: Message, type: Type): message is MessageOf<Type> {
  return message.type === type;
}
