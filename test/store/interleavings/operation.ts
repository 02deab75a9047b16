import type { Ask, Row } from '../support-protocol.js';
import { SCENES, type Scene, type SceneKind } from './scenes.js';

/**
 * What came of a call. `held up`: somebody held a row, and nothing was written; its caller makes it again. `refused`: nothing was
 * written, and would not be.
 */
export type Tried = 'through' | 'held up' | 'refused';

/** One call of one function. */
export interface Operation {
  readonly label: string;
  /** Where it is run. */
  readonly scenes: readonly SceneKind[];
  /** It never writes: its token, or its version, is an old one. */
  readonly isStale?: boolean;
  /** It takes ownership. */
  readonly isClaim?: boolean;
  run(ask: Ask, scene: Scene): Promise<Tried>;
}

export const OWNED = ['owned', 'owned, in a queue'] as const satisfies readonly SceneKind[];
export const ROLLING = ['rolling back'] as const satisfies readonly SceneKind[];
export const LIVE = SCENES.filter((kind) => kind !== 'ended' && kind !== 'cancelled');
export const EVERYWHERE = SCENES;

/** Functions that operations have called, by the text of their statements. */
export const calledFunctions = new Set<string>();

/** A call of a function by name, with its arguments in order. */
export async function call<R extends Row = Row>(ask: Ask, name: string, parameters: readonly unknown[]): Promise<R[]> {
  calledFunctions.add(name);
  const places = parameters.map((_, index) => `$${String(index + 1)}`).join(', ');
  return ask<R>(`SELECT * FROM @${name}(${places})`, parameters);
}

export async function callProcedure(ask: Ask, name: string, parameters: readonly unknown[]): Promise<void> {
  calledFunctions.add(name);
  const places = parameters.map((_, index) => `$${String(index + 1)}`).join(', ');
  await ask(`CALL @${name}(${places})`, parameters);
}

/** Of a function that answers with a refusal, or with nothing. */
export async function write(ask: Ask, name: string, parameters: readonly unknown[]): Promise<Tried> {
  return bounded(async () => {
    const rows = await call<{ answer: string | null }>(ask, name, parameters);
    const answer = rows.find((row) => row.answer !== null)?.answer ?? null;
    if (answer === null) return 'through';
    return answer === 'locked' || answer === 'busy' ? 'held up' : 'refused';
  });
}

/** Of a control operation. */
export async function control(ask: Ask, name: string, parameters: readonly unknown[]): Promise<Tried> {
  return bounded(async () => {
    const [row] = await call<{ result: string }>(ask, name, parameters);
    return row?.result === 'done' ? 'through' : 'refused';
  });
}

/** Of a function that answers nothing of interest. */
export async function plain(ask: Ask, name: string, parameters: readonly unknown[]): Promise<Tried> {
  return bounded(async () => {
    await call(ask, name, parameters);
    return 'through';
  });
}

/** Of a function that leaves what somebody holds for the next time. */
export async function orAgain(ask: Ask, name: string, parameters: readonly unknown[]): Promise<Tried> {
  return bounded(async () => ((await call(ask, name, parameters)).length === 0 ? 'held up' : 'through'));
}

/** What functions do in place of waiting for ever for another transaction; and how those for triggers refuse. */
export async function bounded(work: () => Promise<Tried>): Promise<Tried> {
  try {
    return await work();
  } catch (error) {
    const { code } = error as { code?: string };
    if (code === '55P03') return 'held up';
    if (code?.startsWith('HF') === true) return 'refused';
    throw error;
  }
}
