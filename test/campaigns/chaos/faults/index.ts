import type { Fault } from '../fault.js';
import { kill } from './kills.js';
import { checkpointReply, completionReply } from './lost-replies.js';

/** All faults, by the order of the table. */
export const FAULTS: readonly Fault[] = [checkpointReply, completionReply, kill];
