import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';

import type { Driver, NotificationStream } from '../../src/drivers/driver.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { type PgProxy, startPgProxyFor } from '../support/pg-proxy.js';
import { DRIVER_KINDS, type OpenedDriver } from './driver-kinds.js';
import { ServerActions, until } from './server-actions.js';

const LISTENER = {
  lifeCheckIntervalMs: 50,
  lifeCheckTimeoutMs: 200,
  reconnectDelayMs: 5,
  maxReconnectDelayMs: 50,
};

/** What a stream reported. */
class Recorder {
  readonly notifications: [channel: string, payload: string][] = [];
  listening = 0;
  readonly losses: unknown[] = [];
  readonly handlers = {
    onNotification: (channel: string, payload: string) => {
      this.notifications.push([channel, payload]);
    },
    onListening: () => {
      this.listening++;
    },
    onLost: (cause: unknown) => {
      this.losses.push(cause);
    },
  };
}

describe.each(DRIVER_KINDS)('$label', (kind) => {
  let database: TestDatabase;
  let server: ServerActions;
  let proxy: PgProxy;
  let opened: OpenedDriver;
  let driver: Driver;

  beforeAll(async () => {
    database = await createTestDatabase();
    server = await ServerActions.connect(database.url);
  });
  afterAll(async () => {
    await server.close();
    await database.drop();
  });
  beforeEach(async () => {
    proxy = await startPgProxyFor(database.url);
    opened = await kind.open(proxy.connectionString(database.url), { listener: LISTENER, connectTimeoutMs: 5_000 });
    driver = opened.driver;
  });
  afterEach(async () => {
    await opened.close();
    await proxy.close();
  });

  const notify = (channel: string, payload: string) => server.rows('SELECT pg_notify($1, $2)', [channel, payload]);
  const listen = async (channels: string[]): Promise<{ recorder: Recorder; stream: NotificationStream }> => {
    const recorder = new Recorder();
    const stream = driver.listen(channels, recorder.handlers);
    await until('it listens', () => recorder.listening > 0);
    return { recorder, stream };
  };

  it('notifications arrive with channel and payload, whatever they are called and contain', async () => {
    const channels = ['plain', 'With "quotes"; and \'more\'', 'a:b.c', '😀'];
    const { recorder } = await listen(channels);
    const payloads = ['', 'x'.repeat(7_999), '"\\😀'];
    const expected: [string, string][] = [];
    for (const channel of channels) {
      for (const payload of payloads) {
        expected.push([channel, payload]);
        await notify(channel, payload);
      }
    }
    await notify('another', 'unheard');
    await until('all have arrived', () => recorder.notifications.length >= expected.length);
    expect(recorder.notifications).toEqual(expected);
  });

  it('a killed listening connection is reported and replaced', async () => {
    const { recorder } = await listen(['c']);
    for (let round = 1; round <= 3; round++) {
      await server.killOthers();
      await until('it listens again', () => recorder.listening === round + 1);
      expect(recorder.losses).toHaveLength(round);
      await notify('c', `after ${round}`);
      await until('the notification arrives', () => recorder.notifications.length === round);
    }
  });

  it('a half-open listening connection is found by the life check and replaced', async () => {
    const { recorder } = await listen(['c']);
    proxy.blackHoleAll();
    await until('it listens again', () => recorder.listening === 2);
    expect(recorder.losses).toHaveLength(1);
    await notify('c', 'after');
    await until('the notification arrives', () => recorder.notifications.length === 1);
    await proxy.waitFor(({ open }) => open === 1);
  });

  it('a listener keeps trying for as long as the server is away', async () => {
    const { recorder } = await listen(['c']);
    await proxy.admit('refused');
    proxy.cutAll({ reset: true });
    await until('several attempts have failed', () => recorder.losses.length >= 5);
    await proxy.admit('closed-at-once');
    const before = recorder.losses.length;
    await until('several more have failed', () => recorder.losses.length >= before + 5);
    await proxy.admit('open');
    await until('it listens again', () => recorder.listening === 2);
  });

  it('a stream can be closed while it connects, and leaves no connection behind', async () => {
    await proxy.admit('silent');
    const stream = driver.listen(['c'], new Recorder().handlers);
    await proxy.waitFor(({ turnedAway }) => turnedAway === 1);
    const start = performance.now();
    await stream.close();
    expect(performance.now() - start).toBeLessThan(1_000);
    await proxy.waitForSilentClients(0);
  });

  it('nothing is reported after a stream was closed, and closing the driver closes its streams', async () => {
    const first = await listen(['c']);
    const second = await listen(['c']);
    await first.stream.close();
    await first.stream.close();
    await notify('c', 'x');
    await until('the other one hears it', () => second.recorder.notifications.length === 1);
    expect(first.recorder.notifications).toEqual([]);
    await driver.close();
    await until('no session is left', async () => (await server.countOthers()) === 0);
    expect(second.recorder.losses).toEqual([]);
  });
});
