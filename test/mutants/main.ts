/** Runs the campaigns against libraries with a mistake each. Every one of them has to be found. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { parseArgs } from 'node:util';
import { markdownTable, writeMadePart } from '../campaigns/support/made-part.js';
import { EXIT_CODES } from '../campaigns/support/verdict.js';
import { MISTAKES, type RedCampaign } from './mistakes.js';

const USAGE = `npm run mutants -- [--only TEXT] [--write]

  --only TEXT  only mistakes and campaigns with this in their words
  --write      writes what was found into docs/reliability.md

Takes about 15 minutes. Exit code 1: a mistake was not found by the judge that has to find it.`;

/** What the campaigns print of a judge that is red: with its verdict, or with the moment. */
const RED = /^(?:([\w-]+) +red | {2}([\w-]+) after )/gm;

interface Finding {
  readonly mistake: string;
  readonly campaign: RedCampaign;
  /** Judges that were red. */
  readonly red: readonly string[];
  readonly isFound: boolean;
  readonly seconds: number;
}

const { values } = parseArgs({
  options: { only: { type: 'string', default: '' }, write: { type: 'boolean' }, help: { type: 'boolean' } },
});
if (values.help === true) console.log(USAGE);
else process.exitCode = await main(values.only, values.write === true);

async function main(only: string, isWritten: boolean): Promise<number> {
  const findings: Finding[] = [];
  for (const { is, campaigns } of MISTAKES) {
    for (const campaign of campaigns) {
      if (!`${is} ${commandOf(campaign)}`.includes(only)) continue;
      const finding = await judge(is, campaign);
      findings.push(finding);
      const { isFound, red, seconds } = finding;
      console.log(
        `${isFound ? 'found    ' : 'NOT FOUND'} ${String(seconds).padStart(4)} s  ${is}: ${commandOf(campaign)}: ${red.join(', ') || 'nobody was red'}`,
      );
    }
  }
  if (isWritten) await writeMadePart('mutants', rendered(findings));
  const missed = findings.filter(({ isFound }) => !isFound).length;
  console.log(`${String(findings.length - missed)} of ${String(findings.length)} were found.`);
  return missed === 0 && findings.length > 0 ? 0 : 1;
}

async function judge(mistake: string, campaign: RedCampaign): Promise<Finding> {
  const begun = performance.now();
  const child = spawn('npm', ['run', '--silent', campaign.script, '--', ...campaign.args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let printed = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (printed += text));
  const [code] = (await once(child, 'close')) as [number | null];
  const red = [...new Set([...printed.matchAll(RED)].map(([, byVerdict, byMoment]) => byVerdict ?? byMoment ?? ''))];
  return {
    mistake,
    campaign,
    red,
    isFound: code === EXIT_CODES.red && red.some((name) => campaign.foundBy.includes(name)),
    seconds: Math.round((performance.now() - begun) / 1_000),
  };
}

function rendered(findings: readonly Finding[]): string {
  const rows = findings.map(({ mistake, campaign, red, isFound, seconds }) => [
    mistake,
    `\`${commandOf(campaign)}\``,
    isFound ? red.map((name) => `\`${name}\``).join(', ') : '**not found**',
    String(seconds),
  ]);
  const found = findings.filter(({ isFound }) => isFound).length;
  return [
    markdownTable(['mistake', 'campaign', 'judges that turned red', 'seconds'], rows),
    `Found: ${String(found)} of ${String(findings.length)}, on ${new Date().toISOString().slice(0, 10)}.`,
  ].join('\n\n');
}

function commandOf({ script, args }: RedCampaign): string {
  return `npm run ${script} -- ${args.join(' ')}`;
}
