import { bundle } from '../../support/bundle.js';
import { EXIT_CODES, renderVerdicts, sumUp } from '../support/verdict.js';
import { EXECUTOR_PROGRAM, runFailoverCampaign } from './campaign.js';
import { judgeFailover } from './judges.js';
import { type FailoverCommand, parseFailoverCommand, USAGE } from './options.js';

const command = parseFailoverCommand(process.argv.slice(2));
if (command === undefined) console.log(USAGE);
else process.exitCode = await main(command);

async function main({ options, keep }: FailoverCommand): Promise<number> {
  const compiled = await bundle(EXECUTOR_PROGRAM);
  try {
    console.log(
      `${String(options.rounds)} failovers (${options.kinds.join(', ')}), ${String(options.executors)} executors, ` +
        `seed ${String(options.seed)}, lease ${String(options.leaseMs)} ms, PostgreSQL ${options.release}` +
        (options.mutant === undefined ? '' : `, mutant ${options.mutant}`),
    );
    const evidence = await runFailoverCampaign({
      program: compiled.program,
      options,
      keep,
      progress: (text) => {
        console.error(`${(performance.now() / 1_000).toFixed(1).padStart(6)} s  ${text}`);
      },
    });
    const verdicts = judgeFailover(evidence);
    console.log(renderVerdicts(verdicts));
    return EXIT_CODES[sumUp(verdicts)];
  } finally {
    await compiled.remove();
  }
}
