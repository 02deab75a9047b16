import { appendFile } from 'node:fs/promises';
import { EXIT_CODES, renderVerdicts, sumUp, type Verdict } from '../support/verdict.js';
import { compilePrograms, runChaosCampaign, type ChaosFindings } from './campaign.js';
import { parseChaosCommand, type ChaosCommand } from './options.js';
import { resultOf } from './results.js';

const command = parseChaosCommand(process.argv.slice(2));
if (typeof command === 'string') console.log(command);
else process.exitCode = await main(command);

async function main(command: ChaosCommand): Promise<number> {
  const { options, faults, mutant, keep, results } = command;
  const programs = await compilePrograms();
  const begun = performance.now();
  try {
    console.log(
      `${faults.length === 1 ? String(faults[0]?.name) : `${String(faults.length)} faults by turns`}, ` +
        `${String(options.chaosMs / 60_000)} minutes, seed ${String(options.seed)}, ${String(options.executors)} executors, ` +
        `lease ${String(options.leaseMs)} ms` +
        (mutant === undefined ? '' : `, mutant ${mutant}`),
    );
    const findings = await runChaosCampaign({
      ...{ programs, options, faults, mutant, keep },
      progress: (text) => {
        console.error(text);
      },
    });
    const verdicts = withImpossible(findings);
    console.log(renderVerdicts(verdicts));
    if (results !== undefined) {
      const result = resultOf(command, { ...findings, verdicts }, performance.now() - begun);
      await appendFile(results, `${JSON.stringify(result)}\n`);
    }
    return EXIT_CODES[sumUp(verdicts)];
  } finally {
    await programs.remove();
  }
}

function withImpossible({ verdicts, impossible }: ChaosFindings): readonly Verdict[] {
  const why = Object.entries(impossible).map(([fault, reason]) => `${fault}: ${reason}`);
  return why.length === 0 ? verdicts : [...verdicts, { judge: 'possible', is: 'void', says: why.join('; ') }];
}
