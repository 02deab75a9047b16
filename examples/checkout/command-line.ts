import { parseArgs } from 'node:util';

export const USAGE = `Usage: npm start -- [--orders FILE]

  --orders FILE   orders to place, one JSON object a line (default: the sample beside this program)
  --help          show this

The environment variable DATABASE_URL names a PostgreSQL to use; without it, one is set up and removed again.`;

export type CommandLine =
  | { readonly kind: 'run'; readonly ordersPath: string }
  | { readonly kind: 'help' }
  | { readonly kind: 'wrong'; readonly problem: string };

export function parseCommandLine(args: readonly string[], sampleOrders: string): CommandLine {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: { orders: { type: 'string' }, help: { type: 'boolean', short: 'h' } },
    });
    if (values.help === true) return { kind: 'help' };
    return { kind: 'run', ordersPath: values.orders ?? sampleOrders };
  } catch (error) {
    return { kind: 'wrong', problem: error instanceof Error ? error.message : String(error) };
  }
}
