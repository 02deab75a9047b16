import { afterAll, expect, test } from 'vitest';

import { OwnServer } from '../campaigns/support/own-server.js';
import { releaseAsked } from '../campaigns/support/own-server-place.js';
import { createStandby, promote } from '../campaigns/support/own-standby.js';

// The servers that campaigns do to whatever they like.

const release = releaseAsked(process.env);
const isRoot = process.getuid?.() === 0;
const opened: OwnServer[] = [];
afterAll(async () => {
  for (const server of opened) await server.close();
});

async function create(diskMegabytes?: number): Promise<OwnServer> {
  const server = await OwnServer.create({
    release,
    settings: { fsync: 'off', max_wal_size: '48MB', min_wal_size: '32MB' },
    ...(diskMegabytes === undefined ? {} : { diskMegabytes }),
  });
  opened.push(server);
  return server;
}

async function sum(server: OwnServer): Promise<unknown> {
  return (await server.query('SELECT sum(n)::int AS sum FROM acknowledged'))[0]?.['sum'];
}

test('a server of a campaign’s own keeps what it acknowledged, however it is stopped, and its address', async () => {
  const server = await create();
  await server.query('CREATE TABLE acknowledged (n int)');
  const blows = [
    () => server.restart('fast'),
    () => server.restart('immediate'),
    async () => {
      await server.crash();
      expect(server.isRunning).toBe(false);
      await server.start();
    },
  ];
  for (const [n, blow] of blows.entries()) {
    await server.query('INSERT INTO acknowledged VALUES ($1)', [10 ** n]);
    await blow();
  }
  expect(await sum(server)).toBe(111);
});

test('the synchronous standby has all that the primary acknowledged, and the old primary comes back as itself', async () => {
  const primary = await create();
  await primary.query('CREATE TABLE acknowledged (n int)');
  const standby = await createStandby(primary, { name: 'second', synchronous: true });
  opened.push(standby);
  await primary.query('INSERT INTO acknowledged VALUES (1)');
  await primary.crash();
  await promote(standby);
  expect(await sum(standby)).toBe(1);
  await standby.query('INSERT INTO acknowledged VALUES (10)');
  await primary.start();
  expect(await sum(primary)).toBe(1);
  // The standby that it waits for is somebody else now.
  const client = primary.query('INSERT INTO acknowledged VALUES (100)').catch(() => 'not acknowledged');
  expect(await Promise.race([client, new Promise((resolve) => setTimeout(resolve, 1_000, 'waits'))])).toBe('waits');
  await primary.stop('immediate');
  expect(await client).toBe('not acknowledged');
});

test.skipIf(!isRoot)('a small disk is full, and is free again', async () => {
  const server = await create(160);
  await server.query('CREATE TABLE acknowledged (n int, filling text)');
  server.disk?.fill();
  await expect(
    server.query(`INSERT INTO acknowledged SELECT 1, repeat(md5(n::text), 20) FROM generate_series(1, 20000) AS n`),
  ).rejects.toThrow();
  server.disk?.free();
  await server.start();
  await server.query('INSERT INTO acknowledged VALUES (1)');
  expect(await sum(server)).toBe(1);
});
