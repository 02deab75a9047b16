import { afterAll, beforeAll, expect, test } from 'vitest';
import { defineWorkflow, Holdfast, HoldfastClient } from '../../src/index.js';
import { OwnServer } from '../campaigns/support/own-server.js';
import { releaseAsked } from '../campaigns/support/own-server-place.js';
import { nameAbsentStandbys } from '../campaigns/support/standby-setting.js';
import { silentLogger } from '../support/launch.js';

// A primary that was replaced and does not know it: its synchronous standby is gone, and connections from before are still there.

let server: OwnServer;
let holdfast: Holdfast;
let client: HoldfastClient;
const answer = defineWorkflow('answer', async () => 42);

beforeAll(async () => {
  server = await OwnServer.create({ release: releaseAsked(process.env), settings: { fsync: 'off' } });
  holdfast = await Holdfast.launch({ workflows: [answer], database: server.url, logger: silentLogger });
  client = await HoldfastClient.connect({ database: server.url, logger: silentLogger });
  await (await holdfast.start(answer, { workflowId: 'ended' })).result();
  await client.handle('ended').result();
});
afterAll(async () => {
  await client.close();
  await holdfast.close();
  await server.close();
});

async function settled(work: Promise<unknown>): Promise<unknown> {
  const told = work.then(
    () => 'answered',
    (error: unknown) => error,
  );
  return Promise.race([told, new Promise((resolve) => setTimeout(resolve, 1_500, 'waits'))]);
}

test('it says neither what became of a workflow, nor that there is none: that has to come from a primary that a standby follows', async () => {
  await nameAbsentStandbys(server, 'gone');
  const questions = [
    client.handle('ended').result(),
    client.handle('never started').result(),
    client.getEvent('never started', 'key'),
    client.send('never started', 'topic', 1),
    client.admin.cancel('never started'),
  ];
  const answers = await Promise.all(questions.map(settled));
  // Lists are no such answers: they are shown as they are.
  const rows = await server.query('SELECT workflow_id FROM holdfast.workflow_status');
  server.configure({ synchronous_standby_names: '' });
  expect(answers).toEqual(questions.map(() => 'waits'));
  expect(rows).toEqual([{ workflow_id: 'ended' }]);
  // Once the server is a primary again that may speak, everybody is told.
  const told = await Promise.allSettled(questions);
  expect(told.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected', 'rejected', 'rejected']);
  const codes = told.flatMap((each) => (each.status === 'rejected' ? [(each.reason as { code?: unknown }).code] : []));
  expect(codes).toEqual(Array.from({ length: 4 }, () => 'WORKFLOW_NOT_FOUND'));
});
