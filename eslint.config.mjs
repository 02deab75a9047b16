// @ts-check
import eslint from '@eslint/js';
import { defineConfig, globalIgnores } from 'eslint/config';
import tseslint from 'typescript-eslint';

export default defineConfig(
  globalIgnores(['**/dist/', '**/coverage/', '**/.holdfast/', 'bench/results/', 'bench/peers/']),
  eslint.configs.recommended,
  tseslint.configs.strictTypeChecked,
  tseslint.configs.stylisticTypeChecked,
  {
    languageOptions: {
      parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname },
    },
    linterOptions: { reportUnusedDisableDirectives: 'error' },
    rules: {
      eqeqeq: 'error',
      // TypeScript checks names, in the few JavaScript files too, and knows Node.js's globals.
      'no-undef': 'off',
      // It asks for the `!` that the rules forbid.
      '@typescript-eslint/non-nullable-type-assertion-style': 'off',
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      '@typescript-eslint/consistent-type-imports': ['error', { fixStyle: 'inline-type-imports' }],
      '@typescript-eslint/consistent-type-exports': 'error',
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/no-non-null-assertion': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
      '@typescript-eslint/no-unused-vars': [
        'error',
        { argsIgnorePattern: '^_', varsIgnorePattern: '^_', caughtErrorsIgnorePattern: '^_' },
      ],
      // Errors are rethrown as they came, and rejections of others are passed on: both may be any value.
      '@typescript-eslint/only-throw-error': ['error', { allowThrowingUnknown: true, allowRethrowing: true }],
      '@typescript-eslint/prefer-promise-reject-errors': ['error', { allowThrowingUnknown: true }],
      // A decorated class may well consist of static methods only: that is what workflows are.
      '@typescript-eslint/no-extraneous-class': ['error', { allowWithDecorator: true, allowStaticOnly: true }],
      // `() => promise` given where a void function is expected hides a rejection; `void` as a type argument does not.
      '@typescript-eslint/no-invalid-void-type': [
        'error',
        { allowInGenericTypeArguments: true, allowAsThisParameter: true },
      ],
    },
  },
  {
    files: ['src/**'],
    rules: {
      'no-console': 'error',
      'max-lines': ['error', { max: 400, skipBlankLines: true, skipComments: true }],
      'max-lines-per-function': ['error', { max: 60, skipBlankLines: true, skipComments: true }],
    },
  },
  {
    // What measures, waits or draws lots there gets time and chance from its `Runtime`, so that it can run in virtual time.
    files: ['src/engine/**', 'src/fleet/**', 'src/effects/**', 'src/admin/**'],
    // It is called by the user's handlers, with a network that knows real time only.
    ignores: ['src/effects/webhook.ts'],
    rules: {
      'no-restricted-globals': [
        'error',
        ...['setTimeout', 'setInterval', 'setImmediate', 'performance', 'crypto'].map((name) => ({
          name,
          message: 'Ask the runtime (src/runtime).',
        })),
      ],
      'no-restricted-properties': [
        'error',
        { object: 'Date', property: 'now', message: 'Ask the runtime (src/runtime).' },
        { object: 'Math', property: 'random', message: 'Ask the runtime (src/runtime).' },
      ],
      'no-restricted-imports': [
        'error',
        {
          paths: [
            { name: 'node:timers' },
            { name: 'node:timers/promises' },
            { name: 'node:perf_hooks' },
            { name: 'node:crypto', importNames: ['randomUUID', 'randomBytes', 'randomFillSync', 'randomInt'] },
          ],
        },
      ],
    },
  },
  {
    files: ['**/*.mjs'],
    rules: {
      // It does not see the type that a JSDoc cast gives to `JSON.parse`.
      '@typescript-eslint/no-unsafe-assignment': 'off',
    },
  },
  {
    files: ['test/**', 'bench/**', 'examples/**'],
    rules: {
      // Doubles and durable functions are async for their type, whether or not they wait for something.
      '@typescript-eslint/require-await': 'off',
    },
  },
);
