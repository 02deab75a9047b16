import { writeFile } from 'node:fs/promises';
import { openCampaignDatabase } from '../support/campaign-database.js';
import { EXIT_CODES, renderVerdicts, sumUp } from '../support/verdict.js';
import { compilePrograms, runPaymentsCampaign } from './campaign.js';
import { judgePayments } from './judges/index.js';
import { parsePaymentsCommand, type PaymentsCommand, USAGE } from './options.js';

const command = parsePaymentsCommand(process.argv.slice(2));
if (command === undefined) console.log(USAGE);
else process.exitCode = await main(command);

async function main({ options, mutant, keep }: PaymentsCommand): Promise<number> {
  const programs = await compilePrograms();
  const database = await openCampaignDatabase(process.env);
  try {
    console.log(
      `${String(options.workers)} workers, ${String(options.orders)} orders, ${String(options.chaosMs / 60_000)} minutes, ` +
        `seed ${String(options.seed)}, lease ${String(options.leaseMs)} ms, ${database.source}` +
        (mutant === undefined ? '' : `, mutant ${mutant}`),
    );
    const evidence = await runPaymentsCampaign({
      database: database.url,
      programs,
      options,
      mutant,
      progress: (text) => {
        console.error(text);
      },
    });
    if (keep !== undefined) {
      await writeFile(keep, evidence.ledger.map((entry) => `${JSON.stringify(entry)}\n`).join(''));
    }
    const verdicts = judgePayments(evidence);
    console.log(renderVerdicts(verdicts));
    return EXIT_CODES[sumUp(verdicts)];
  } finally {
    await programs.remove();
    await database.close();
  }
}
