import { Ledger } from './ledger.js';
import { OutsideWorld, type Passing } from './server.js';
import { type Script, scriptedTroubles } from './trouble.js';

// The outside world as a process of its own: the payment provider and the mail service. What it did is in its ledger, and
// nowhere else.

/** What the process is given as its argument, as JSON. */
export interface OutsideProcessOptions {
  readonly ledger: string;
  readonly troubles: Script;
}

/** What it tells its parent. It waits at each passing until the parent says `go on`. */
export type FromOutsideProcess =
  | { readonly what: 'listening'; readonly url: string }
  | { readonly what: 'passing'; readonly number: number; readonly passing: Passing };

export interface ToOutsideProcess {
  readonly goOn: number;
}

const options = JSON.parse(process.argv[2] ?? '{}') as OutsideProcessOptions;
const waiting = new Map<number, () => void>();
let passings = 0;

const outside = new OutsideWorld({
  ledger: new Ledger(options.ledger),
  troubles: scriptedTroubles(options.troubles),
  onPassing: (passing) =>
    new Promise((resolve) => {
      const number = ++passings;
      waiting.set(number, resolve);
      tell({ what: 'passing', number, passing });
    }),
});

function tell(message: FromOutsideProcess): void {
  process.send?.(message, () => undefined);
}

process.on('message', ({ goOn }: ToOutsideProcess) => {
  waiting.get(goOn)?.();
  waiting.delete(goOn);
});
process.on('disconnect', () => process.exit());

await outside.open();
tell({ what: 'listening', url: outside.url });
