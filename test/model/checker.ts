import { spawn, spawnSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { LIVENESS, SAFETY, type LivenessProperty, type Parameters, type SafetyProperty } from './configurations.js';

const MODEL = fileURLToPath(new URL('holdfast.pml', import.meta.url));
/** A search that needs more memory ends as unfinished, in MiB. */
const MEMORY_MIB = 6_000;
/** The longest path that is followed. A search that is cut off ends as unfinished. */
const MAX_DEPTH = 2_000_000;

/** What is checked: all that must never be, one of these, or one formula. */
export type Property = 'safety' | SafetyProperty | LivenessProperty;

export type Finding =
  /** `property`: which one, as the assertion or the formula says. */
  | { readonly kind: 'violated'; readonly property: string }
  | { readonly kind: 'holds' }
  /** Out of time, memory or depth: nothing has been shown. */
  | { readonly kind: 'unfinished'; readonly why: string };

export interface Search {
  readonly finding: Finding;
  readonly states: number;
  readonly depth: number;
  readonly seconds: number;
}

/** What the checker needs and this machine has not; undefined: nothing. */
export function missingTool(): string | undefined {
  if (spawnSync('spin', ['-V']).status !== 0) return 'spin';
  if (spawnSync('gcc', ['--version']).status !== 0) return 'gcc';
  return undefined;
}

/** Has spin make a program out of the model, and runs it. Everything that is made is in a temporary directory. */
export async function search(
  property: Property,
  parameters: Parameters,
  limitMs: number,
  /** Longer to compile, and three times as fast: for what takes more than a few seconds. */
  optimised = false,
): Promise<Search> {
  const directory = await mkdtemp(join(tmpdir(), 'holdfast-model-'));
  const startedAt = performance.now();
  try {
    const macros = { ...parameters, ...macrosOf(property) };
    const defines = Object.entries(macros).map(([name, value]) => `-D${name}=${String(value)}`);
    await run(directory, 'spin', ['-a', ...defines, MODEL]);
    const mode = isLiveness(property) ? ['-DNFAIR=3'] : ['-DSAFETY', '-DNOCLAIM'];
    await run(directory, 'gcc', [
      optimised ? '-O1' : '-O0',
      '-w',
      '-DCOLLAPSE',
      `-DMEMLIM=${String(MEMORY_MIB)}`,
      ...mode,
      '-o',
      'pan',
      'pan.c',
    ]);
    const flags = isLiveness(property) ? ['-a', '-f'] : ['-E'];
    const { output, isOver } = await run(directory, './pan', [`-m${String(MAX_DEPTH)}`, ...flags], limitMs);
    return { ...read(property, output, isOver), seconds: (performance.now() - startedAt) / 1_000 };
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

function isLiveness(property: Property): property is LivenessProperty {
  return property in LIVENESS;
}

function macrosOf(property: Property): Parameters {
  if (property === 'safety') return {};
  // Of a formula alone: assertions would be found before it.
  return isLiveness(property) ? { [LIVENESS[property]]: 1, ONLY: 99 } : { ONLY: SAFETY[property] };
}

function read(property: Property, output: string, isOver: boolean): Omit<Search, 'seconds'> {
  const states = Number(/(\S+) states, stored/.exec(output)?.[1] ?? 0);
  const depth = Number(/depth reached (\d+)/.exec(output)?.[1] ?? 0);
  const found = (finding: Finding): Omit<Search, 'seconds'> => ({ finding, states, depth });
  const assertion = /assertion violated (.*) \(at depth/.exec(output)?.[1];
  if (assertion !== undefined) {
    const name = Object.keys(SAFETY).find((each) => assertion.includes(each));
    return found({ kind: 'violated', property: name ?? assertion });
  }
  if (output.includes('acceptance cycle (at depth')) return found({ kind: 'violated', property });
  if (!isOver) return found({ kind: 'unfinished', why: 'out of time' });
  if (output.includes('Search not completed')) return found({ kind: 'unfinished', why: 'out of memory' });
  if (output.includes('max search depth too small')) return found({ kind: 'unfinished', why: 'out of depth' });
  if (!/errors: 0\b/.test(output)) throw new Error(`The checker did not say what it found:\n${output}`);
  return found({ kind: 'holds' });
}

async function run(
  cwd: string,
  command: string,
  parameters: readonly string[],
  limitMs = 120_000,
): Promise<{ readonly output: string; readonly isOver: boolean }> {
  const child = spawn(command, parameters, { cwd, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  const take = (chunk: Buffer): void => {
    output += chunk.toString();
  };
  child.stdout.on('data', take);
  child.stderr.on('data', take);
  let isOver = true;
  const timer = setTimeout(() => {
    isOver = false;
    child.kill('SIGINT'); // It says how far it has come.
  }, limitMs);
  try {
    const status = await new Promise<number | null>((resolve, reject) => {
      child.once('error', reject);
      child.once('close', resolve);
    });
    if (status !== 0 && command !== './pan') throw new Error(`${command} failed:\n${output}`);
    return { output, isOver };
  } finally {
    clearTimeout(timer);
  }
}
