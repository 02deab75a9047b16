import pg from 'pg';
import { beforeEach, vi } from 'vitest';

import { currentCondition, inSchema } from './conditions.js';
import { LEFT_OUT, leftOutReason } from './left-out.js';

// Runs in every test file before it, under a condition alone: see conditions.ts.

const condition = currentCondition();

if (condition !== undefined) {
  beforeEach(({ task, skip }) => {
    const reason = leftOutReason(LEFT_OUT, condition.name, task.file.name, fullTitle(task));
    if (reason !== undefined) skip(reason);
  });
  if (condition.replaysAlways === true) {
    vi.doMock('../../src/engine/execution.js', async (original) => {
      const { replayedExecutions } = await import('./replay-always.js');
      return replayedExecutions(await original());
    });
    vi.doMock('../../src/store/postgres/postgres-store.js', async (original) => {
      const { readableStores } = await import('./replay-always.js');
      return readableStores(await original());
    });
  }
  if (condition.launch !== undefined) await launchWith(condition.launch);
  if (condition.launch?.schema !== undefined) rewriteQueries(condition.launch.schema);
}

/** The titles of the groups that the test is in, and its own. */
function fullTitle(task: { readonly name: string; readonly suite?: { readonly name: string } | undefined }): string {
  const titles: string[] = [];
  for (let at: typeof task | undefined = task; at !== undefined; at = at.suite)
    if (at.name !== '') titles.unshift(at.name);
  return titles.join(' > ');
}

/** Launches that say nothing of it get what the condition says. */
async function launchWith(defaults: object): Promise<void> {
  const { Holdfast, HoldfastClient } = await import('../../src/index.js');
  const launch = Holdfast.launch.bind(Holdfast);
  Holdfast.launch = (options: object) => launch({ ...defaults, ...options } as never);
  const connect = HoldfastClient.connect.bind(HoldfastClient);
  // A client has no lease, and the like.
  const shared = Object.fromEntries(
    Object.entries(defaults).filter(([option]) => ['schema', 'maxConnections', 'notifications'].includes(option)),
  );
  HoldfastClient.connect = (options) => connect({ ...shared, ...options });
}

/**
 * SQL of tests names the default schema. Connections of Holdfast's own pools are left alone: a name that is written there by
 * mistake has to be found.
 */
function rewriteQueries(schema: string): void {
  const prototype = pg.Client.prototype as { query: (...args: unknown[]) => unknown };
  const { query } = prototype;
  prototype.query = function (this: pg.Client, ...args: unknown[]) {
    const [text, ...others] = args;
    const { application_name: application } = (this as unknown as { connectionParameters: Record<string, unknown> })
      .connectionParameters;
    if (typeof text !== 'string' || application === 'holdfast') return query.apply(this, args);
    return query.call(this, inSchema(text, schema), ...others);
  };
}
