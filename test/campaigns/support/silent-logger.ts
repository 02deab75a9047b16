import type { Logger } from '../../../src/index.js';

const silent = (): undefined => undefined;

/** Says nothing: what a campaign provokes is in its ledger. */
export const silentLogger: Logger = { debug: silent, info: silent, warn: silent, error: silent };
