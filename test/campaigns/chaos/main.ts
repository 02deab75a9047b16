import { appendFile } from 'node:fs/promises';
import { EXIT_CODES, renderVerdicts, sumUp, type Verdict } from '../support/verdict.js';
import { compilePrograms, runChaosCampaign, type ChaosFindings, type Programs } from './campaign.js';
import type { Fault } from './fault.js';
import { runLeaks } from './leaks.js';
import { parseChaosCommand, type ChaosCommand } from './options.js';
import { resultOf } from './results.js';

/** As many as show what a workflow leaves behind. */
const LEAK_WORKFLOWS = 50_000;

const command = parseChaosCommand(process.argv.slice(2));
if (typeof command === 'string') console.log(command);
else process.exitCode = await main(command);

async function main(command: ChaosCommand): Promise<number> {
  if (command.leaks) {
    const heap = await runLeaks(LEAK_WORKFLOWS, (text) => {
      console.error(text);
    });
    console.log(renderVerdicts([heap]));
    return EXIT_CODES[heap.is];
  }
  const programs = await compilePrograms();
  try {
    const ends: Verdict['is'][] = [];
    for (const faults of command.runs) ends.push(await runUntilJudged(programs, command, faults));
    const worst = ends.includes('red') ? 'red' : ends.includes('void') ? 'void' : 'green';
    return EXIT_CODES[worst];
  } finally {
    await programs.remove();
  }
}

/** A run that shows nothing is done again, with another seed, as often as was asked for. */
async function runUntilJudged(
  programs: Programs,
  command: ChaosCommand,
  faults: readonly Fault[],
): Promise<Verdict['is']> {
  for (let tries = 1; ; tries++) {
    const options = { ...command.options, seed: command.options.seed + tries - 1 };
    const end = await runOnce(programs, { ...command, options }, faults);
    if (end !== 'void' || tries >= command.tries) return end;
  }
}

async function runOnce(
  programs: Programs,
  { options, mutant, keep, results }: ChaosCommand,
  faults: readonly Fault[],
): Promise<Verdict['is']> {
  console.log(
    `${faults.length === 1 ? String(faults[0]?.name) : `${String(faults.length)} faults by turns`}, ` +
      `${String(options.chaosMs / 60_000)} minutes, seed ${String(options.seed)}, ${String(options.executors)} executors, ` +
      `lease ${String(options.leaseMs)} ms` +
      (mutant === undefined ? '' : `, mutant ${mutant}`),
  );
  const run = { programs, options, faults, mutant, keep };
  const findings = await runChaosCampaign({
    ...run,
    progress: (text) => {
      console.error(text);
    },
    onPart: async (part, chaosMs, tookMs) => {
      if (results === undefined) return;
      const result = resultOf(run, { ...part, verdicts: withImpossible(part) }, chaosMs, tookMs);
      await appendFile(results, `${JSON.stringify(result)}\n`);
    },
  });
  const verdicts = withImpossible(findings);
  console.log(renderVerdicts(verdicts));
  return sumUp(verdicts);
}

function withImpossible({ verdicts, impossible }: ChaosFindings): readonly Verdict[] {
  const why = Object.entries(impossible).map(([fault, reason]) => `${fault}: ${reason}`);
  return why.length === 0 ? verdicts : [...verdicts, { judge: 'possible', is: 'void', says: why.join('; ') }];
}
