import { type Fault, FaultImpossible } from '../fault.js';
import { alone } from './database.js';

const DISK_MEGABYTES = 512;
/** How long the disk is full at most before something needs room, in milliseconds. */
const LONGEST_MS = 8_000;
const LOOK_EVERY_MS = 50;
const BETWEEN_LEASES = 2;
const FULL_LEASES = 2;
/** In every locale the server logs in English. */
const NO_ROOM = 'No space left on device';

export const diskFull: Fault = {
  name: 'disk-full',
  does: 'the file system with tables and log has no room left, until some time after the server has noticed; then there is room again',
  landsWhen: 'the server failed to write something because of it',
  wants: {},
  alone: true,
  server: {
    diskMegabytes: DISK_MEGABYTES,
    settings: { max_wal_size: '64MB', min_wal_size: '32MB', shared_buffers: '32MB' },
  },
  async run(arena) {
    const { server, leaseMs, hit } = arena;
    const { disk } = server;
    if (disk === undefined) {
      throw new FaultImpossible('A disk of a given size is a tmpfs, and this process may not mount one.');
    }
    while (await arena.pause(leaseMs * BETWEEN_LEASES * arena.random.between(0.5, 1.5))) {
      await alone(server, async () => {
        const before = server.log().length;
        disk.fill();
        const deadline = performance.now() + LONGEST_MS;
        const hasNoticed = (): boolean => server.log().slice(before).includes(NO_ROOM);
        while (!hasNoticed() && performance.now() < deadline && (await arena.pause(LOOK_EVERY_MS)));
        if (hasNoticed()) hit(server.isRunning ? 'a write' : 'the server has ended');
        await arena.pause(leaseMs * FULL_LEASES);
        disk.free();
        // Without room for its log it ends, and does not recover by itself.
        await server.start();
      });
    }
  },
};
