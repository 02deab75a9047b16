import type { ClaimAnswer, ClaimRequest } from '../../store.js';
import { findExecutor } from '../executors.js';
import type { MemoryDatabase } from '../memory-database.js';
import { askAgain, newClaim, type Claim } from './claim.js';
import { pickDue, pickUnqueued, promote } from './due.js';
import { pickQueued } from './pick-queued.js';
import { recover } from './recover.js';
import { takeAll } from './take.js';

/** Moments that are closer together than this are waited for together, in milliseconds. */
const SOONEST_MS = 50;

/** Takes workflows over: what dead executors left, what is due, what waits; see claim_work. */
export function claimWork(db: MemoryDatabase, request: ClaimRequest): ClaimAnswer {
  const executor = findExecutor(db, request.executor);
  if (executor === undefined || executor.leaseUntil <= db.now()) {
    return { workflows: [], isLimited: false, againInMs: null, isSoon: false, turns: null };
  }
  const claim = newClaim(db, request);
  recover(claim);
  promote(claim);
  pickDue(claim);
  pickUnqueued(claim);
  const turns = pickQueued(claim);
  if (request.only === undefined) askAgain(claim, nextMoment(claim));
  const { isLimited, isSoon, againInMs } = claim;
  const saysNothing = !isLimited && !isSoon && againInMs === null && turns === null;
  const passedOn = JSON.stringify(turns ?? { queue: null, keys: {} });
  return {
    workflows: takeAll(claim),
    isLimited,
    isSoon,
    againInMs,
    turns: saysNothing ? null : turns === null ? (request.turns ?? passedOn) : passedOn,
  };
}

/** In how many milliseconds something becomes due; null: nothing waits for a moment. */
function nextMoment({ db }: Claim): number | null {
  const now = db.now();
  const moments = [...db.workflows.values()]
    .filter(({ status }) => status === 'DELAYED' || status === 'SUSPENDED')
    .map(({ wakeAt }) => wakeAt ?? 0)
    .filter((wakeAt) => wakeAt > now);
  return moments.length === 0 ? null : Math.max(SOONEST_MS, Math.min(...moments) - now);
}
