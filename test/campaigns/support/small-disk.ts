import { execFileSync } from 'node:child_process';
import { closeSync, openSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';

const FILLER = 'filler';
const CHUNKS = [Buffer.alloc(4 * 1024 * 1024), Buffer.alloc(64 * 1024)];
/** The last few bytes are taken by small writes, so that nothing at all fits any more. */
const CRUMB = Buffer.alloc(512);

/** A file system of a fixed size, in memory, that can be filled up and freed again. */
export class SmallDisk {
  readonly #directory: string;
  #isMounted = true;
  // For a process that ends in the middle: a mount is not removed with the files below it.
  readonly #onExit = (): void => {
    this.unmount();
  };

  private constructor(directory: string) {
    this.#directory = directory;
    process.on('exit', this.#onExit);
  }

  /**
   * Mounts it on an existing directory, which is root's business.
   * @returns undefined where this process may not mount anything
   */
  static mount(directory: string, megabytes: number): SmallDisk | undefined {
    if (!tryToRun('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m,mode=0711`, 'tmpfs', directory])) return undefined;
    return new SmallDisk(directory);
  }

  /** Takes all the room that is left. What is written from now on fails with ENOSPC. */
  fill(): void {
    const file = openSync(join(this.#directory, FILLER), 'a');
    try {
      for (const piece of [...CHUNKS, CRUMB]) while (hasRoomFor(file, piece));
    } finally {
      closeSync(file);
    }
  }

  /** Gives the room back. */
  free(): void {
    rmSync(join(this.#directory, FILLER), { force: true });
  }

  /** Idempotent. Files that are still open do not hinder it. */
  unmount(): void {
    if (!this.#isMounted) return;
    this.#isMounted = false;
    process.off('exit', this.#onExit);
    execFileSync('umount', ['-l', this.#directory], { stdio: 'ignore' });
  }
}

function hasRoomFor(file: number, piece: Buffer): boolean {
  try {
    return writeSync(file, piece) === piece.length;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOSPC') return false;
    throw error;
  }
}

function tryToRun(program: string, args: readonly string[]): boolean {
  try {
    execFileSync(program, args, { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
