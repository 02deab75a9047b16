import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { defineWorkflow, Holdfast, runStep, startEmbeddedPostgres, workflow } from '../../src/index.js';
import { silentLogger, waitUntil } from '../support/launch.js';
import { startPgProxyFor } from '../support/pg-proxy.js';

// A server of its own, which can be stopped and started again.

test('C10 the database restarts while a recovery runs: it is tried again, and nothing stays pending', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'holdfast-restart-'));
  onTestFinished(() => rm(dataDir, { recursive: true, force: true }));
  const settings = { fsync: 'off' };
  let server = await startEmbeddedPostgres({ dataDir, settings });
  onTestFinished(() => server.stop());
  const port = Number(new URL(server.connectionString).port);
  const proxy = await startPgProxyFor(server.connectionString);
  onTestFinished(() => proxy.close());
  const database = proxy.connectionString(server.connectionString);

  const bodies = new Map<string, number>();
  const run = defineWorkflow('restarted', async () => {
    const { workflowId, epoch } = workflow();
    const first = await runStep('first', () => Promise.resolve(epoch));
    return runStep('second', async () => {
      bodies.set(workflowId, (bodies.get(workflowId) ?? 0) + 1);
      if (epoch === 1) await new Promise(() => undefined);
      return [first, epoch];
    });
  });
  const common = { database, workflows: [run], logger: silentLogger, shutdownTimeout: 0, lease: 1_000 };
  const dead = await Holdfast.launch({ ...common, executorId: 'same', pollInterval: '1h' });
  const workflowIds = Array.from({ length: 20 }, (_, index) => `restarted ${String(index)}`);
  await Promise.all(workflowIds.map((workflowId) => dead.start(run, { workflowId })));
  await waitUntil(() => bodies.size === 20, 'all hang in their second step');

  // The claim is committed, and the history of what was claimed is being read, when the server goes down.
  const claim = proxy.arm({ do: 'black-hole', afterForwarding: true }, /claim_work\(/);
  const history = proxy.arm({ do: 'black-hole' }, /load_history/);
  const survivor = await Holdfast.launch({ ...common, executorId: 'same', pollInterval: 50 });
  onTestFinished(() => survivor.close());
  await claim.happened;
  await server.stop();
  proxy.cutAll({ reset: true });
  history.disarm();
  server = await startEmbeddedPostgres({ dataDir, port, settings });

  const results = await Promise.all(workflowIds.map((workflowId) => survivor.handle(workflowId).result()));
  // The first step's result is the first epoch's.
  expect(results.map((result) => (result as number[])[0])).toEqual(workflowIds.map(() => 1));
  expect([...bodies.values()]).toEqual(workflowIds.map(() => 2));
  const client = new pg.Client(server.connectionString);
  await client.connect();
  const { rows } = await client.query('SELECT DISTINCT status FROM holdfast.workflow_status');
  await client.end();
  expect(rows).toEqual([{ status: 'SUCCESS' }]);
  expect(survivor.health().state).toBe('running');
  await dead.close();
});
