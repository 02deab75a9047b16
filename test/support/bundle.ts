import { copyFile, mkdir, mkdtemp, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { build, type Plugin } from 'vite';

const PACKAGE = fileURLToPath(new URL('../../', import.meta.url));
/** Ignored by git, and inside the package, so that what is bundled there finds its dependencies. */
const BUNDLES = join(PACKAGE, '.holdfast');

/** A program compiled together with the library's sources, to be forked many times without being compiled each time. */
export interface Bundle {
  readonly program: string;
  remove(): Promise<void>;
}

/**
 * @param plugins What is done to the sources on their way.
 * @param library The package whose manifest and SQL files the program is to find: default this one.
 */
export async function bundle(entry: URL, plugins: Plugin[] = [], library = PACKAGE): Promise<Bundle> {
  await mkdir(BUNDLES, { recursive: true });
  const folder = await mkdtemp(join(BUNDLES, 'worker-'));
  // The library looks for its manifest and its SQL files around itself, as in an installed package.
  await copyFile(join(library, 'package.json'), join(folder, 'package.json'));
  await symlink(join(library, 'sql'), join(folder, 'sql'));
  await build({
    configFile: false,
    logLevel: 'error',
    plugins,
    build: {
      ssr: fileURLToPath(entry),
      outDir: join(folder, 'dist'),
      target: 'node20',
      rollupOptions: { output: { entryFileNames: 'main.mjs' } },
    },
  });
  return {
    program: join(folder, 'dist', 'main.mjs'),
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}
