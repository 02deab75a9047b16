import { styleText } from 'node:util';

type Style = Parameters<typeof styleText>[0];

/** Writes the story down on standard output: plain text, with colours where a person looks at it. */
export class Narrator {
  readonly #colours = process.stdout.isTTY && (process.env['NO_COLOR'] ?? '') === '';
  #stages = 0;

  title(text: string): void {
    this.#write(this.#style('bold', text));
  }

  /** Begins a numbered part of the story. */
  stage(text: string): void {
    this.blank();
    this.#write(this.#style('bold', `${String(++this.#stages)}. ${text}`));
  }

  blank(): void {
    this.#write('');
  }

  say(text: string): void {
    this.#write(`   ${text}`);
  }

  warn(text: string): void {
    this.#write(`   ${this.#style('yellow', text)}`);
  }

  good(text: string): void {
    this.#write(this.#style('green', text));
  }

  bad(text: string): void {
    this.#write(this.#style('red', text));
  }

  /** Says each of the first few, and how many more there are. */
  sayEach(texts: readonly string[], limit = 12): void {
    for (const text of texts.slice(0, limit)) this.say(text);
    if (texts.length > limit) this.say(`… and ${String(texts.length - limit)} more like these.`);
  }

  #style(style: Style, text: string): string {
    return this.#colours ? styleText(style, text) : text;
  }

  #write(line: string): void {
    process.stdout.write(`${line}\n`);
  }
}
