import fc from '../../support/fast-check.js';

/** Names that are also names of the language, of the format, or unusual. */
export const NOTABLE_KEYS = [
  '__proto__',
  'constructor',
  'toString',
  'hasOwnProperty',
  'valueOf',
  'then',
  'length',
  '$holdfast',
  '$codec',
  '$',
  '$$',
  '$date',
  '$$date',
  '$ref',
  'value',
  '',
  '0',
  '17',
  'a b',
  '\0',
  '\ud800',
] as const;

export const anyKey = fc.oneof(fc.constantFrom(...NOTABLE_KEYS), fc.string({ unit: 'binary', maxLength: 6 }));

/** Strings with NUL characters, lone surrogates and words of the format. */
export const anyString = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.constantFrom('\0', '\ud800', '\udc00a', '"$holdfast"', '{"$holdfast":1}', '\u2028', '$ref'),
);

export const anyPrimitive = fc.oneof(
  anyString,
  fc.double(),
  fc.integer(),
  fc.constantFrom(Number.NaN, -0, 0, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, Number.MAX_VALUE, 5e-324),
  fc.bigInt(),
  fc.boolean(),
  fc.constant(null),
  fc.constant(undefined),
);

const someBytes = fc.uint8Array({ maxLength: 24 });
const wholeBytes = (size: number): fc.Arbitrary<ArrayBuffer> =>
  fc.uint8Array({ maxLength: 4 }).map((bytes) => {
    const buffer = new ArrayBuffer(bytes.length * size);
    new Uint8Array(buffer).set(bytes);
    return buffer;
  });

/** Objects that hold no other objects. Views are on buffers of their own, since only what a view shows is kept. */
export const anyLeafObject: fc.Arbitrary<object> = fc.oneof(
  fc.date({ noInvalidDate: false }),
  fc
    .constantFrom('a', '[\\d/]+', '(?<name>\\0)')
    .chain((source) => fc.constantFrom('', 'g', 'gimsy', 'u').map((flags) => new RegExp(source, flags))),
  fc.webUrl({ withQueryParameters: true, withFragments: true }).map((url) => new URL(url)),
  someBytes.map((bytes) => new Uint8Array(bytes).buffer),
  someBytes.map((bytes) => new Uint8Array(bytes)),
  someBytes.map((bytes) => Buffer.from(bytes)),
  wholeBytes(1).map((buffer) => new DataView(buffer)),
  wholeBytes(1).map((buffer) => new Int8Array(buffer)),
  wholeBytes(1).map((buffer) => new Uint8ClampedArray(buffer)),
  wholeBytes(2).map((buffer) => new Int16Array(buffer)),
  wholeBytes(2).map((buffer) => new Uint16Array(buffer)),
  wholeBytes(4).map((buffer) => new Int32Array(buffer)),
  wholeBytes(4).map((buffer) => new Uint32Array(buffer)),
  wholeBytes(4).map((buffer) => new Float32Array(buffer)),
  wholeBytes(8).map((buffer) => new Float64Array(buffer)),
  wholeBytes(8).map((buffer) => new BigInt64Array(buffer)),
  wholeBytes(8).map((buffer) => new BigUint64Array(buffer)),
  fc.oneof(fc.double(), fc.string(), fc.boolean()).map((primitive) => Object(primitive) as object),
);

type ContainerKind = 'record' | 'null-prototype' | 'array' | 'match' | 'map' | 'set' | 'error';
interface Edge {
  readonly key: string;
  readonly skip: number;
  /** Index of a node of the graph, or a value of its own. */
  readonly target: number | { readonly own: unknown };
}
interface Node {
  readonly kind: ContainerKind;
  readonly edges: readonly Edge[];
}

const anyEdge: fc.Arbitrary<Edge> = fc.record({
  key: anyKey,
  skip: fc.nat({ max: 2 }),
  target: fc.oneof(
    fc.nat({ max: 6 }),
    fc.record({ own: anyPrimitive }, { noNullPrototype: true }),
    fc.record({ own: anyLeafObject }, { noNullPrototype: true }),
  ),
});

/** Values of every kind, nested in every kind, with shared and circular references. */
export const anyValue: fc.Arbitrary<unknown> = fc.oneof(
  { weight: 1, arbitrary: fc.oneof(anyPrimitive, anyLeafObject) },
  {
    weight: 9,
    arbitrary: fc
      .array(
        fc.record({
          kind: fc.constantFrom<ContainerKind>('record', 'null-prototype', 'array', 'match', 'map', 'set', 'error'),
          edges: fc.array(anyEdge, { maxLength: 5 }),
        }),
        { minLength: 1, maxLength: 7 },
      )
      .map(buildGraph),
  },
);

function buildGraph(nodes: readonly Node[]): unknown {
  const containers = nodes.map((node, index) => createContainer(node.kind, index));
  for (const [index, node] of nodes.entries()) {
    for (const edge of node.edges) {
      const value = typeof edge.target === 'number' ? containers[edge.target % containers.length] : edge.target.own;
      connect(containers[index], edge, value);
    }
  }
  return containers[0];
}

function createContainer(kind: ContainerKind, index: number): object {
  switch (kind) {
    case 'record':
      return {};
    case 'null-prototype':
      return Object.create(null) as object;
    case 'array':
      return [];
    case 'match':
      return Object.assign([], { input: 'named property' });
    case 'map':
      return new Map();
    case 'set':
      return new Set();
    case 'error':
      return new RangeError(`error ${index}`);
  }
}

function connect(container: object | undefined, edge: Edge, value: unknown): void {
  if (container instanceof Map) container.set(edge.skip === 0 ? value : edge.key, value);
  else if (container instanceof Set) container.add(value);
  else if (Array.isArray(container)) {
    container.length += edge.skip;
    container.push(value);
  } else if (container instanceof Error) {
    if (edge.skip === 0) Object.defineProperty(container, 'cause', { value, enumerable: false, configurable: true });
    else Object.defineProperty(container, `own${edge.key}`, { value, enumerable: true, configurable: true });
  } else if (container !== undefined) {
    Object.defineProperty(container, edge.key, { value, writable: true, enumerable: true, configurable: true });
  }
}
