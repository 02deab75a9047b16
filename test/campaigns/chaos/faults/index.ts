import type { Fault } from '../fault.js';
import { controls, duplicateStarts } from './clients.js';
import { asynchronousCommit, backendKilled, databaseCrash, databaseImmediate, databaseRestart } from './database.js';
import { diskFull } from './disk-full.js';
import { kill, killAtPoint } from './kills.js';
import { lockedRows, lockedTable } from './locks.js';
import { checkpointReply, commitReply, completionReply, cutBefore } from './lost-replies.js';
import { blackHole, delay, listenerLost, terminate } from './network.js';
import { pause, pauseInTransaction } from './pauses.js';
import { blockedLoop, clock, falseDeath, smallPool } from './processes.js';
import { twoVersions } from './two-versions.js';

/** All faults, by the order of the table. */
export const FAULTS: readonly Fault[] = [
  checkpointReply,
  completionReply,
  pauseInTransaction,
  commitReply,
  cutBefore,
  blackHole,
  delay,
  terminate,
  listenerLost,
  kill,
  killAtPoint,
  pause,
  falseDeath,
  blockedLoop,
  clock,
  smallPool,
  duplicateStarts,
  controls,
  twoVersions,
  databaseRestart,
  databaseImmediate,
  databaseCrash,
  backendKilled,
  diskFull,
  lockedRows,
  lockedTable,
  asynchronousCommit,
];
