import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { bundle, type Bundle } from '../../support/bundle.js';
import { FaultImpossible } from './fault.js';

const PACKAGE = fileURLToPath(new URL('../../../', import.meta.url));
const MIGRATIONS = 'sql/migrations';
/** What the program is made of besides the library: the campaigns' own files. */
const OURS = 'test/campaigns';

/**
 * An executor's program with the library of the oldest commit that may run on today's schema: the migrations that it knows are the
 * ones of today, and the later ones say that libraries of its schema go on working.
 * @throws FaultImpossible where the history is not there.
 */
export async function compileOldWorker(): Promise<Bundle & { readonly commit: string }> {
  const commit = oldestThatMayRun();
  mkdirSync(join(PACKAGE, '.holdfast'), { recursive: true });
  const folder = mkdtempSync(join(PACKAGE, '.holdfast', 'old-'));
  try {
    const archive = execFileSync('git', ['archive', commit, 'src', 'sql', 'package.json'], {
      cwd: PACKAGE,
      maxBuffer: 1 << 28,
    });
    execFileSync('tar', ['-x', '-C', folder], { input: archive });
    cpSync(join(PACKAGE, OURS), join(folder, OURS), { recursive: true });
    const entry = pathToFileURL(join(folder, 'test/campaigns/chaos/programs/old-worker.ts'));
    const compiled = await bundle(entry, [], folder);
    return {
      commit,
      program: compiled.program,
      remove: async () => {
        await compiled.remove();
        rmSync(folder, { recursive: true, force: true });
      },
    };
  } catch (error) {
    rmSync(folder, { recursive: true, force: true });
    throw error;
  }
}

function git(...args: readonly string[]): string {
  return execFileSync('git', args, { cwd: PACKAGE, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
}

function oldestThatMayRun(): string {
  let commits: readonly string[];
  try {
    commits = git('rev-list', '--first-parent', '--reverse', 'HEAD').split('\n').filter(Boolean);
  } catch {
    throw new FaultImpossible('there is no git history here to take an earlier release from');
  }
  const head = new Set(filesOf('HEAD'));
  const oldest = commits.find((commit) => {
    const files = filesOf(commit);
    return files.length > 0 && files.every((file) => head.has(file));
  });
  if (oldest === undefined || filesOf(oldest).length === head.size) {
    throw new FaultImpossible('the git history here has no release with an older schema: it may be a shallow clone');
  }
  return oldest;
}

/** Migrations of a commit: name and content. */
function filesOf(commit: string): readonly string[] {
  return git('ls-tree', '-r', commit, '--', MIGRATIONS).split('\n').filter(Boolean);
}
