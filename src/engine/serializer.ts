import type { ValueSerializer } from '../values/index.js';

/** Turns values into the text that is stored, and back. Asynchronous only where the user's codec is. */
export type Serializer = Pick<ValueSerializer, 'encode' | 'encodeError' | 'decode'>;
