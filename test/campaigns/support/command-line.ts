/** @throws Error for what is no number from 0 on. */
export function numberOf(option: string, value: string): number {
  const number = Number(value);
  if (!Number.isFinite(number) || number < 0) throw new Error(`${option} is "${value}", not a number.`);
  return number;
}

/** The mutant that is asked for, if one is. @throws Error when there is none of that name. */
export function mutantOf<Name extends string>(mutants: readonly Name[], asked: string | undefined): Name | undefined {
  const mutant = mutants.find((name) => name === asked);
  if (asked !== undefined && mutant === undefined) {
    throw new Error(`--mutant is "${asked}", not one of ${mutants.join(', ')}.`);
  }
  return mutant;
}
