import type { ArmedFault, ProxyFault, ProxyHit, ProxyStatement } from '../../../support/pg-proxy.js';
import { untilOver } from '../arena.js';
import type { Arena, Fault } from '../fault.js';
import type { Member } from '../member.js';
import { endsTransaction } from './pauses.js';

/** The write of a step's result, alone or with others, without an outcome. */
export function isCheckpoint({ sql }: ProxyStatement): boolean {
  return /\bcheckpoint_(one|batch)\(/.test(sql) && !isCompletion({ sql });
}

/** The write of an outcome, alone or with others. */
export function isCompletion({ sql }: Pick<ProxyStatement, 'sql'>): boolean {
  return /\bcomplete_batch\(/.test(sql);
}

/** Any write of an execution. */
export function isWrite(statement: ProxyStatement): boolean {
  return (
    isCheckpoint(statement) ||
    isCompletion(statement) ||
    endsTransaction(statement) ||
    /\b(start_batch|record_intent|record_event|consume_message|suspend_workflow)\(/.test(statement.sql)
  );
}

/** Arms a fault in every executor's proxy that hits a share of what matches, until the faults are over. */
export async function armEverywhere(
  arena: Arena,
  fault: () => ProxyFault,
  matches: (statement: ProxyStatement) => boolean,
  share: number,
  onHit: (hit: ProxyHit, member: Member) => void,
): Promise<void> {
  const armed: ArmedFault[] = [];
  const end = arena.crew.eachMember((member) => {
    armed.push(
      member.proxy.arm(fault(), (statement) => matches(statement) && arena.random.next() < share, {
        times: Infinity,
        onHit: (hit) => {
          onHit(hit, member);
        },
      }),
    );
  });
  await untilOver(arena);
  end();
  for (const each of armed) each.disarm();
}

/** With less, too little would be hit; with more, hardly a second try would get through. */
const SHARE = 0.25;

function lostReply(
  name: string,
  of: string,
  matches: (statement: ProxyStatement) => boolean,
  fault: Partial<Fault>,
): Fault {
  return {
    name,
    does: `a quarter of the replies to ${of} are dropped, and their connections cut`,
    landsWhen: 'the proxy saw the server finish the statement without an error or a refusal, and swallowed the answer',
    wants: {},
    ...fault,
    run: (arena) =>
      armEverywhere(
        arena,
        () => ({ do: 'drop-reply', reset: true }),
        matches,
        SHARE,
        (hit) => {
          if (!hit.failed) arena.hit(of);
        },
      ),
  };
}

export const checkpointReply = lostReply('checkpoint-reply-lost', 'writes of checkpoints', isCheckpoint, {
  traffic: { steps: 6, parent: 1, sleeper: 1, herald: 1, poster: 1, queued: 2, mailbox: 1 },
});

export const completionReply = lostReply('completion-reply-lost', 'writes of outcomes', isCompletion, {
  traffic: { short: 8, parent: 2, queued: 2, mailbox: 1 },
});

export const commitReply = lostReply(
  'commit-reply-lost',
  'COMMITs of transactions',
  ({ sql }) => /^COMMIT\b/i.test(sql),
  {
    traffic: { paying: 8, short: 1 },
    crew: { outstanding: 14, maxConnections: 12 },
  },
);

export const cutBefore: Fault = {
  name: 'cut-before',
  does: 'a tenth of the writes and COMMITs do not arrive: their connections are cut',
  landsWhen: 'the proxy had the statement, did not pass it on, and cut the connection',
  wants: {},
  run: (arena) =>
    armEverywhere(
      arena,
      () => ({ do: 'cut-before', reset: arena.random.next() < 0.5 }),
      isWrite,
      0.1,
      () => {
        arena.hit('a write');
      },
    ),
};
