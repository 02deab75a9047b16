// @ts-check

/** The layers of src/ from the top down: a module may import from its own and from lower ones (docs/architecture.md). */
const LAYERS = [
  // Files of src/ itself assemble the library: index.ts and what it is made of.
  ['[^/]+\\.ts', 'cli', 'testing'],
  ['decorators', 'fleet', 'effects', 'admin'],
  ['engine'],
  ['store'],
  ['drivers'],
];

/** Below all layers: interfaces and leaves that every one may import, the drivers excepted for the interfaces. */
const BELOW_ENGINE_SURFACE = ['api', 'errors', 'values'];

/** @param {readonly string[]} entries */
const within = (entries) => `^src/(${entries.join('|')})(/|$)`;

/** @type {import('dependency-cruiser').IForbiddenRuleType[]} */
const upwardImports = LAYERS.slice(1).map((layer, index) => ({
  name: `${layer.join('-')}-imports-nothing-above`,
  comment: 'Imports run one way: index → decorators, fleet, effects, admin → engine → store → drivers.',
  severity: 'error',
  from: { path: within(layer) },
  to: { path: within(LAYERS.slice(0, index + 1).flat()) },
}));

/** @type {import('dependency-cruiser').IConfiguration} */
export default {
  forbidden: [
    {
      name: 'no-cycle',
      comment: 'A cycle, even one of types only, means that neither side can be understood or tested alone.',
      severity: 'error',
      from: {},
      to: { circular: true },
    },
    ...upwardImports,
    {
      name: 'api-imports-no-layer',
      comment: 'Interfaces and their documentation stand apart from the code that implements them.',
      severity: 'error',
      from: { path: within(['api']) },
      to: { path: '^src/', pathNot: within(BELOW_ENGINE_SURFACE) },
    },
    {
      name: 'leaves-import-leaves-only',
      comment: 'Everyone may import errors, values and the runtime, so these import nobody.',
      severity: 'error',
      from: { path: within(['errors', 'values', 'runtime']) },
      to: { path: '^src/', pathNot: within(['errors', 'values', 'runtime']) },
    },
    {
      name: 'drivers-know-no-api',
      comment: 'A driver knows SQL and connections, not workflows.',
      severity: 'error',
      from: { path: within(['drivers']) },
      to: { path: within(['api']) },
    },
    {
      name: 'src-imports-src-only',
      severity: 'error',
      from: { path: '^src/' },
      to: { path: '^(test|bench|examples|scripts)/' },
    },
    {
      name: 'src-needs-declared-packages',
      comment: 'What src/ imports is installed with the package, or an optional peer.',
      severity: 'error',
      from: { path: '^src/' },
      to: {
        dependencyTypes: ['npm-dev', 'npm-no-pkg', 'npm-unknown', 'undetermined'],
        dependencyTypesNot: ['npm-peer', 'type-only'],
      },
    },
    { name: 'resolvable', severity: 'error', from: {}, to: { couldNotResolve: true } },
    {
      name: 'no-orphan',
      comment: 'A module that nobody imports and that imports nobody is dead.',
      severity: 'error',
      from: { orphan: true, path: '^src/', pathNot: ['\\.mjs$', '^src/index\\.ts$'] },
      to: {},
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    // Types count: an import of a type is knowledge, too.
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['import', 'node', 'default', 'types'] },
  },
};
