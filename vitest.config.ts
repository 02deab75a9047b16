import { dirname } from 'node:path';

import ts from 'typescript';
import { configDefaults, defineConfig, type Plugin } from 'vitest/config';

import { currentCondition } from './test/support/conditions.js';
import { filesLeftOut } from './test/support/left-out.js';

/**
 * esbuild knows no `emitDecoratorMetadata`, and treats a folder's own `experimentalDecorators` like the rest. So files below
 * a `legacy-decorators` folder are compiled by TypeScript itself, with the `tsconfig.json` of that folder.
 */
function legacyDecorators(): Plugin {
  return {
    name: 'legacy-decorators',
    enforce: 'pre',
    transform(code, id) {
      const fileName = id.split('?', 1)[0] ?? id;
      if (!/\/legacy-decorators\/.*\.ts$/.test(fileName)) return undefined;
      const { outputText, sourceMapText } = ts.transpileModule(code, {
        fileName,
        compilerOptions: optionsFor(fileName),
      });
      return { code: outputText, map: sourceMapText ?? null };
    },
  };
}

function optionsFor(fileName: string): ts.CompilerOptions {
  const configFile = ts.findConfigFile(dirname(fileName), (path) => ts.sys.fileExists(path));
  if (configFile === undefined) throw new Error(`No tsconfig.json above ${fileName}.`);
  const { config } = ts.readConfigFile(configFile, (path) => ts.sys.readFile(path)) as { config: unknown };
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, dirname(configFile));
  return { ...options, module: ts.ModuleKind.ESNext, sourceMap: true, inlineSources: true };
}

/** The suite again under another condition: see test/support/conditions.ts. */
function underCondition(): {
  readonly setupFiles?: string[];
  readonly execArgv?: string[];
  readonly exclude?: string[];
} {
  const condition = currentCondition();
  if (condition === undefined) return {};
  return {
    setupFiles: ['test/support/conditions-setup.ts'],
    execArgv: [...(condition.nodeFlags ?? [])],
    exclude: [...configDefaults.exclude, ...filesLeftOut(condition.name)],
  };
}

export default defineConfig({
  plugins: [legacyDecorators()],
  // Below ESNext, esbuild lowers the standard decorators, which Node.js does not know.
  esbuild: { target: 'es2022' },
  test: {
    environment: 'node',
    include: ['test/**/*.test.ts'],
    pool: 'forks',
    maxWorkers: 2,
    globalSetup: ['test/support/global-setup.ts'],
    ...underCondition(),
    testTimeout: 60_000,
    hookTimeout: 120_000,
    teardownTimeout: 30_000,
    restoreMocks: true,
    unstubEnvs: true,
  },
});
