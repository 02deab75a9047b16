import { BUILT_IN_ERRORS } from './built-in-errors.js';
import { InvalidArgumentError } from './errors/admin-errors.js';
import type { HoldfastOptions } from './holdfast-options.js';
import { ErrorRegistry, ValueSerializer } from './values/index.js';

type SerializerOptions = Pick<HoldfastOptions, 'codecs' | 'errors' | 'maxValueBytes'>;

/**
 * How values become the text that is stored.
 * @throws InvalidArgumentError
 */
export function makeSerializer({ codecs = [], errors = [], maxValueBytes }: SerializerOptions): ValueSerializer {
  try {
    return new ValueSerializer({
      codecs,
      errors: new ErrorRegistry([...BUILT_IN_ERRORS, ...errors]),
      ...(maxValueBytes === undefined ? {} : { maxBytes: maxValueBytes }),
    });
  } catch (cause) {
    throw new InvalidArgumentError(
      'Two "codecs" or two "errors" have one name, or one of the "errors" is no class of errors.',
      {
        cause,
      },
    );
  }
}
