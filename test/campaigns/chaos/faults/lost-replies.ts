import type { ArmedFault, ProxyFault, ProxyHit, ProxyStatement } from '../../../support/pg-proxy.js';
import { untilOver } from '../arena.js';
import type { Arena, Fault } from '../fault.js';
import type { Member } from '../member.js';

/** The write of a step's result, alone or with others, without an outcome. */
export function isCheckpoint({ sql }: ProxyStatement): boolean {
  return /\bcheckpoint_(one|batch)\(/.test(sql) && !isCompletion({ sql });
}

/** The write of an outcome, alone or with others. */
export function isCompletion({ sql }: Pick<ProxyStatement, 'sql'>): boolean {
  return /\bcomplete_batch\(/.test(sql);
}

/** Arms a fault in every executor's proxy that hits a share of what matches, until the faults are over. */
export async function armEverywhere(
  arena: Arena,
  fault: (member: Member) => ProxyFault,
  matches: (statement: ProxyStatement) => boolean,
  share: number,
  onHit: (hit: ProxyHit, member: Member) => void,
): Promise<void> {
  const armed: ArmedFault[] = [];
  const end = arena.crew.eachMember((member) => {
    armed.push(
      member.proxy.arm(fault(member), (statement) => matches(statement) && arena.random.next() < share, {
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
    does: `drops the reply to the write of ${of}, and cuts the connection, a quarter of the time`,
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

export const checkpointReply = lostReply('checkpoint-reply-lost', 'a checkpoint', isCheckpoint, {
  traffic: { steps: 6, parent: 1, sleeper: 1, herald: 1, poster: 1, queued: 2, mailbox: 1 },
});

export const completionReply = lostReply('completion-reply-lost', 'an outcome', isCompletion, {
  traffic: { short: 8, parent: 2, queued: 2, mailbox: 1 },
});
