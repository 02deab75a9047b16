/** A class of errors. Its constructor is never called when a stored error is rebuilt. */
export type ErrorClass = abstract new (...args: never[]) => Error;

/**
 * The error classes that stored errors may come back as, besides the built-in ones. An error of any other class comes
 * back as `Error` with its name kept.
 *
 * A class is found by its own name; where a bundler may rename classes, give the name as well:
 *
 *     new ErrorRegistry([PaymentDeclinedError, ...Object.entries({ OutOfStockError })])
 *
 * A rebuilt error has its class's prototype, the stored message, stack, cause and own properties. Private fields
 * (`#field`) cannot be restored, so methods that use them throw.
 */
export class ErrorRegistry {
  readonly #classes = new Map<string, ErrorClass>();

  /** @throws {TypeError} for something that is not a class of errors, or for two classes of one name */
  constructor(classes: Iterable<ErrorClass | readonly [name: string, errorClass: ErrorClass]> = []) {
    for (const entry of classes) {
      if (typeof entry === 'function') this.#add(entry.name, entry);
      else this.#add(entry[0], entry[1]);
    }
  }

  /** The class registered under a name. */
  find(name: string): ErrorClass | undefined {
    return this.#classes.get(name);
  }

  #add(name: string, errorClass: ErrorClass): void {
    if (typeof errorClass !== 'function' || !((errorClass.prototype as unknown) instanceof Error)) {
      throw new TypeError(`'${name}' is not a class that extends Error, so it cannot be in an ErrorRegistry.`);
    }
    const existing = this.#classes.get(name);
    if (existing !== undefined && existing !== errorClass) {
      throw new TypeError(`Two error classes have the name '${name}'. Register one of them as [name, class].`);
    }
    this.#classes.set(name, errorClass);
  }
}
