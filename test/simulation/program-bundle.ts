import { bundle, type Bundle } from '../support/bundle.js';
import { PATCHES } from './mutants.js';

const PROGRAM = new URL('./program.ts', import.meta.url);

/** The simulation's program; on request with all mutants in its copy of the library, of which {@link beMutant} chooses one. */
export function programBundle(hasMutants: boolean): Promise<Bundle> {
  return hasMutants ? mutatedBundle() : bundle(PROGRAM);
}

async function mutatedBundle(): Promise<Bundle> {
  const patched = new Set<string>();
  const made = await bundle(PROGRAM, [
    {
      name: 'mutants',
      enforce: 'pre',
      transform(code, id) {
        const file = /\/src\/(.*\.ts)$/.exec(id)?.[1];
        if (file === undefined) return undefined;
        patched.add(file);
        return PATCHES.filter((patch) => patch.file === file).reduce((text, { find, replace }) => {
          if (text.split(find).length !== 2) throw new Error(`${file} does not have once: ${find}`);
          return text.replace(find, () => replace.replace(/IS\(([a-z-]+)\)/g, `(globalThis.${MUTANT} === '$1')`));
        }, code);
      },
    },
  ]);
  const missing = PATCHES.find(({ file }) => !patched.has(file));
  if (missing !== undefined) throw new Error(`The simulation does not use ${missing.file}.`);
  return made;
}

const MUTANT = 'simulationMutant';

/** From now on this thread runs with that mistake, if it was bundled with them. */
export function beMutant(name: string): void {
  (globalThis as Record<string, unknown>)[MUTANT] = name;
}
