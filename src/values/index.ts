export { decodeError, decodeValue } from './decode-value.js';
export { encodeError } from './encode-error.js';
export { encodeValue } from './encode-value.js';
export { droppedPropertiesOf } from './error-note.js';
export { ErrorRegistry, type ErrorClass } from './error-registry.js';
export { DEFAULT_MAX_VALUE_BYTES, DEFAULT_VALUE_LIMITS, MAX_DEPTH, type ValueLimits } from './limits.js';
export type { PayloadCodec } from './payload-codec.js';
export { ValueSerializer, type ValueSerializerOptions } from './value-serializer.js';
