import { runClosedLoop, type Subject } from './closed-loop.js';
import { runDrains } from './drain-loop.js';
import type { Command, Message } from './protocol.js';

/** What a worker process measures, and how to end it. */
export interface HostedSubject extends Subject {
  /** Name, version and settings that matter, for the report. */
  readonly about: string;
  close(): Promise<void>;
}

/** The whole life of a worker process: sets the subject up, runs what it is told to, ends with the benchmark. */
export async function hostSubject(launch: () => Promise<HostedSubject>): Promise<void> {
  try {
    const subject = await launch();
    tell({ type: 'ready', about: subject.about });
    for await (const command of commands()) {
      if (command.type === 'stop') break;
      const undo = await subject.prepare?.(command.order);
      const run = command.order.work === 'drain' ? runDrains : runClosedLoop;
      const result = await run(subject, command.order, {
        opened: () => {
          tell({ type: 'window-opened' });
        },
        closed: () => {
          tell({ type: 'window-closed' });
        },
      });
      await undo?.();
      tell({ type: 'result', result });
    }
    await subject.close();
    process.disconnect();
  } catch (error) {
    console.error(error);
    tell({ type: 'failed', reason: error instanceof Error ? error.message : String(error) });
    process.exitCode = 1;
    // Whatever the failure left open would keep the process, and the benchmark that waits for its end.
    setTimeout(() => process.exit(), FAILED_EXIT_DELAY_MS).unref();
    process.disconnect();
  }
}

const FAILED_EXIT_DELAY_MS = 500;

/** The database of this process; given by the benchmark, which made it. */
export function databaseUrl(): string {
  const url = process.env['BENCH_WORKER_DATABASE_URL'];
  if (url === undefined) throw new Error('This program is started by bench/main.ts.');
  return url;
}

function tell(message: Message): void {
  if (process.send === undefined) throw new Error('This program is started by bench/main.ts.');
  process.send(message);
}

async function* commands(): AsyncGenerator<Command> {
  for (;;) {
    yield await new Promise<Command>((resolve) => {
      const onMessage = (command: Command): void => {
        process.off('disconnect', onDisconnect);
        resolve(command);
      };
      // The benchmark is gone: nobody is left to measure for.
      const onDisconnect = (): void => {
        process.off('message', onMessage);
        resolve({ type: 'stop' });
      };
      process.once('message', onMessage);
      process.once('disconnect', onDisconnect);
    });
  }
}
