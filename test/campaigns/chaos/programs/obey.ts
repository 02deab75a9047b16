import type { Command, Numbered, Reply } from './messages.js';

/** Carries out what the supervisor says, one answer for each command. */
export function obeySupervisor(obey: (command: Command) => Promise<unknown>): void {
  process.on('message', (command: Numbered<Command>) => {
    const answer = (reply: Omit<Reply, 'id'>): void => {
      process.send?.({ id: command.id, ...reply } satisfies Reply, () => undefined);
    };
    obey(command).then(
      (value) => {
        answer({ value });
      },
      (error: unknown) => {
        answer({ error: String(error) });
      },
    );
  });
  // Without the campaign nobody needs this process.
  process.on('disconnect', () => process.exit(0));
  process.send?.({ id: 0 } satisfies Reply);
}
