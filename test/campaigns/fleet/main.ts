import { writeFile } from 'node:fs/promises';

import { EXIT_CODES, renderVerdicts, sumUp } from '../support/verdict.js';
import { openCampaignDatabase } from '../support/campaign-database.js';
import { bundle } from '../../support/bundle.js';
import { EXECUTOR_PROGRAM, runFleetCampaign } from './campaign.js';
import { judgeFleet } from './judges/index.js';
import { parseFleetCommand, USAGE, type FleetCommand } from './options.js';

const command = parseFleetCommand(process.argv.slice(2));
if (command === undefined) console.log(USAGE);
else process.exitCode = await main(command);

async function main({ options, mutant, keep }: FleetCommand): Promise<number> {
  const compiled = await bundle(EXECUTOR_PROGRAM);
  const database = await openCampaignDatabase(process.env);
  try {
    console.log(
      `${String(options.executors)} executors, ${String(options.workflows)} workflows, ${String(options.chaosMs / 60_000)} minutes, ` +
        `seed ${String(options.seed)}, lease ${String(options.leaseMs)} ms, ${database.source}` +
        (mutant === undefined ? '' : `, mutant ${mutant}`),
    );
    const evidence = await runFleetCampaign({
      database: database.url,
      program: compiled.program,
      options,
      mutant,
      progress: (text) => {
        console.error(text);
      },
    });
    if (keep !== undefined) {
      await writeFile(keep, evidence.events.map((event) => `${JSON.stringify(event)}\n`).join(''));
    }
    const verdicts = judgeFleet(evidence);
    console.log(renderVerdicts(verdicts));
    return EXIT_CODES[sumUp(verdicts)];
  } finally {
    await compiled.remove();
    await database.close();
  }
}
