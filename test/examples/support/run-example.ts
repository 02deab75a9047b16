import { spawn } from 'node:child_process';
import { readdir } from 'node:fs/promises';
import { expect } from 'vitest';
import { waitUntil } from '../../support/launch.js';

/** How a run of an example ended. */
export interface Run {
  readonly exitCode: number | null;
  readonly output: string;
  /** The process group in which the program and its processes ran. */
  readonly group: number;
}

export interface ExampleRun {
  /** `main.ts` of an example, and its arguments. */
  readonly command: readonly string[];
  /** Besides those of this process. */
  readonly environment: Readonly<Record<string, string>>;
  /** May interfere. */
  readonly onOutput?: ((output: string, group: number) => void) | undefined;
}

/** Runs an example as its npm script does, in a process group of its own. */
export function runExample({ command, environment, onOutput }: ExampleRun): Promise<Run> {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, ['--import', 'tsx', ...command], {
      env: { ...process.env, ...environment },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    });
    const group = child.pid ?? 0;
    let output = '';
    const collect = (chunk: Buffer): void => {
      output += chunk.toString();
      onOutput?.(output, group);
    };
    child.stdout.on('data', collect);
    child.stderr.on('data', collect);
    child.on('close', (exitCode) => {
      resolve({ exitCode, output, group });
    });
  });
}

/** That a run has left neither processes nor files: `scratch` was its temporary directory. */
export async function expectCleanEnd({ group }: Run, scratch: string): Promise<void> {
  // The loader's compiler, a process of its own, hears of the end of the program a moment later.
  await waitUntil(() => !isAlive(group), 'no process of its group lives');
  // The loader keeps its cache there, and so does the embedded server, where its user cannot run the installed binaries.
  const files = (await readdir(scratch)).filter(
    (name) => !name.startsWith('tsx-') && !/^holdfast-postgres-\d/.test(name),
  );
  expect(files, 'its temporary directory is empty').toEqual([]);
}

function isAlive(group: number): boolean {
  try {
    return process.kill(-group, 0);
  } catch {
    return false;
  }
}
