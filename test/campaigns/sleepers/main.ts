import { parseArgs } from 'node:util';

import { bundle } from '../../support/bundle.js';
import { openCampaignDatabase } from '../support/campaign-database.js';
import { EXIT_CODES, renderVerdicts, sumUp } from '../support/verdict.js';
import { EXECUTOR_PROGRAM, runSleeperCampaign, type SleeperOptions } from './campaign.js';
import { DEFAULT_BOUNDS, judgeSleepers } from './judges.js';

const USAGE = `Usage: npm run campaign:sleepers -- [options]

  --count <n>      workflows that sleep all the time (default 1000000)
  --rate <n>       workflows that become due, a second (default 200)
  --seconds <n>    for so long (default 60)
  --help           this text

The server is TEST_DATABASE_URL if set, Debian's with HOLDFAST_TEST_POSTGRES=15, else the embedded PostgreSQL.
Exit code: 0 all judges are green, 1 one is red.`;

const { values } = parseArgs({
  options: {
    count: { type: 'string', default: '1000000' },
    rate: { type: 'string', default: '200' },
    seconds: { type: 'string', default: '60' },
    help: { type: 'boolean', default: false },
  },
});
if (values.help) console.log(USAGE);
else {
  process.exitCode = await main({
    count: positive('--count', values.count),
    rate: positive('--rate', values.rate),
    seconds: positive('--seconds', values.seconds),
  });
}

async function main(options: SleeperOptions): Promise<number> {
  const compiled = await bundle(EXECUTOR_PROGRAM);
  const database = await openCampaignDatabase(process.env);
  try {
    console.log(`${String(options.count)} sleepers, ${database.source}`);
    const report = await runSleeperCampaign({
      database: database.url,
      program: compiled.program,
      options,
      progress: (text) => {
        console.error(text);
      },
    });
    const verdicts = judgeSleepers(report, options, DEFAULT_BOUNDS);
    console.log(renderVerdicts(verdicts));
    return EXIT_CODES[sumUp(verdicts)];
  } finally {
    await compiled.remove();
    await database.close();
  }
}

function positive(option: string, value: string): number {
  const number = Number(value);
  if (!Number.isFinite(number) || number <= 0) throw new Error(`${option} is "${value}", not a positive number.`);
  return number;
}
