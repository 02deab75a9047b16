/** The outside world of the campaign: the example's, held where the campaign says, in a process that is never struck. */
import { Ledger, type RequestKind } from '../../../examples/payments/outside/ledger.js';
import { OutsideWorld, type Passing } from '../../../examples/payments/outside/server.js';
import { seededTroubles } from '../../../examples/payments/outside/trouble.js';
import type { FromOutside, OutsideProcessOptions, ToOutside } from './messages.js';
import type { Trap } from './points.js';

const options = JSON.parse(process.argv[2] ?? '{}') as OutsideProcessOptions;
/** Who asked for each order; the relay's workers, which send the events of any order, left out. */
const workers = new Map<string, Set<number>>();
const requests: Record<RequestKind, number> = { charge: 0, lookup: 0, refund: 0, close: 0, notify: 0 };
let traps: readonly Trap[] = [];
let letGo: () => void = () => undefined;

const outside = new OutsideWorld({
  ledger: new Ledger(options.ledger),
  troubles: seededTroubles(options.seed, options.troubleShare),
  onPassing,
});

async function onPassing({ request, moment, orderId, worker }: Passing): Promise<void> {
  if (moment === 'arrived') count(request, orderId, worker);
  const trap = traps.find(({ point }) => point === `${request} ${moment}`);
  if (trap === undefined || worker === undefined) return;
  traps = [];
  const released = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  tell({ what: 'held', trap, worker });
  await released;
}

function count(request: RequestKind, orderId: string, worker: number | undefined): void {
  requests[request] += 1;
  if (request === 'notify' || worker === undefined) return;
  const known = workers.get(orderId);
  if (known === undefined) workers.set(orderId, new Set([worker]));
  else known.add(worker);
}

function tell(message: FromOutside): void {
  process.send?.(message, () => undefined);
}

process.on('message', (message: ToOutside) => {
  switch (message.do) {
    case 'arm':
      traps = message.traps;
      return;
    case 'let-go':
      letGo();
      return;
    case 'shut':
      outside.shut();
      return;
    case 'open':
      void outside.open();
      return;
    case 'report': {
      const handovers = [...workers.values()].filter(({ size }) => size > 1).length;
      tell({ what: 'report', tally: { requests, handovers } });
    }
  }
});
process.on('disconnect', () => process.exit(0));

await outside.open();
tell({ what: 'listening', url: outside.url });
