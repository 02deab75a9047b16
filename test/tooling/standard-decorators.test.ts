import { expect, test } from 'vitest';

function shout<This, Arguments extends unknown[]>(
  method: (this: This, ...args: Arguments) => string,
  context: ClassMethodDecoratorContext<This, (this: This, ...args: Arguments) => string>,
) {
  return function (this: This, ...args: Arguments): string {
    return `${String(context.name)}${context.static ? ' (static)' : ''}: ${method.apply(this, args).toUpperCase()}`;
  };
}

class Greeter {
  readonly #name = 'Ada';

  @shout
  static greet(name: string): string {
    return `hello ${name}`;
  }

  @shout
  greet(): string {
    return `hello ${this.#name}`;
  }
}

test('standard decorators work in tests, on static and on instance methods', () => {
  expect(Greeter.greet('Bob')).toBe('greet (static): HELLO BOB');
  expect(new Greeter().greet()).toBe('greet: HELLO ADA');
});
