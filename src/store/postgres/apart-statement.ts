import type { SqlParameter } from '../../drivers/driver.js';
import type { ApartWrite, PendingCall, PendingEnqueue, PendingIntent, PendingSuspension } from './pending-write.js';
import type { ProtocolCall } from './protocol-call.js';

/** One parameter of a function: its name, its type, its value for a write, and how the function gets it if not as it is. */
interface Parameter<Write> {
  readonly name: string;
  readonly type: string;
  readonly pick: (write: Write) => string | number | boolean | null;
  readonly as?: string;
}

/** A function of the protocol that is called once for each write, and answers with one row. */
interface ApartFunction<Write> {
  readonly name: string;
  readonly parameters: readonly Parameter<Write>[];
  /** What it returns besides the answer of classify_refusal. */
  readonly returns: readonly string[];
  /** The order in which rows are written: two processes that write the same ones cannot deadlock. */
  readonly order: string;
}

type Owned = PendingIntent | PendingEnqueue | PendingSuspension | PendingCall;

/** What every write that checks ownership begins with. */
function ownership<Write extends Owned>(): Parameter<Write>[] {
  return [
    { name: 'workflow_id', type: 'text', pick: (write) => write.workflowId },
    { name: 'token', type: 'uuid', pick: (write) => write.ownership.token },
    { name: 'version', type: 'int8', pick: (write) => write.ownership.recordVersion },
    { name: 'nonce', type: 'uuid', pick: (write) => write.nonce },
  ];
}

const INTENT: ApartFunction<PendingIntent> = {
  name: 'record_intent',
  parameters: [
    ...ownership<PendingIntent>(),
    { name: 'seq', type: 'int4', pick: ({ intent }) => intent.seq },
    { name: 'name', type: 'text', pick: ({ intent }) => intent.name },
    { name: 'kind', type: 'text', pick: ({ intent }) => intent.kind },
    {
      name: 'sleep_ms',
      type: 'int8',
      pick: ({ intent: { sleep } }) => (sleep !== undefined && 'ms' in sleep ? sleep.ms : null),
    },
    {
      name: 'until_ms',
      type: 'float8',
      pick: ({ intent: { sleep } }) => (sleep !== undefined && 'untilMs' in sleep ? sleep.untilMs : null),
      as: 'to_timestamp(CASE WHEN r.until_ms < 0 THEN 0 ELSE r.until_ms END / 1000)',
    },
    { name: 'child_id', type: 'text', pick: ({ intent }) => intent.child?.workflowId ?? null },
    { name: 'child_name', type: 'text', pick: ({ intent }) => intent.child?.name ?? null },
    { name: 'child_instance', type: 'text', pick: ({ intent }) => intent.child?.instance ?? null },
    { name: 'child_token', type: 'uuid', pick: ({ intent }) => intent.child?.token ?? null },
    { name: 'child_input', type: 'text', pick: ({ intent }) => intent.child?.input ?? null },
    { name: 'child_close', type: 'text', pick: ({ intent }) => intent.child?.onParentCancel ?? null },
    { name: 'child_max_attempts', type: 'int4', pick: ({ intent }) => intent.child?.maxAttempts ?? null },
    { name: 'child_timeout_ms', type: 'int8', pick: ({ intent }) => intent.child?.timeoutMs ?? null },
    { name: 'child_attributes', type: 'text', pick: ({ intent }) => intent.child?.attributes ?? null },
  ],
  returns: ['remaining_ms', 'child'],
  // As start_batch.
  order: 'child_id',
};

const ENQUEUE: ApartFunction<PendingEnqueue> = {
  name: 'record_enqueue',
  parameters: [
    ...ownership<PendingEnqueue>(),
    { name: 'seq', type: 'int4', pick: ({ record }) => record.seq },
    { name: 'name', type: 'text', pick: ({ record }) => record.name },
    { name: 'kind', type: 'text', pick: () => 'enqueue' },
    { name: 'child_id', type: 'text', pick: ({ record }) => record.child.workflowId },
    { name: 'child_name', type: 'text', pick: ({ record }) => record.child.name },
    { name: 'child_instance', type: 'text', pick: ({ record }) => record.child.instance },
    { name: 'child_input', type: 'text', pick: ({ record }) => record.child.input },
    { name: 'child_close', type: 'text', pick: ({ record }) => record.child.onParentCancel },
    { name: 'child_max_attempts', type: 'int4', pick: ({ record }) => record.child.maxAttempts },
    { name: 'child_timeout_ms', type: 'int8', pick: ({ record }) => record.child.timeoutMs },
    { name: 'child_attributes', type: 'text', pick: ({ record }) => record.child.attributes },
    { name: 'queue', type: 'text', pick: ({ record }) => record.child.queue },
    { name: 'priority', type: 'int4', pick: ({ record }) => record.child.priority },
    { name: 'key', type: 'text', pick: ({ record }) => record.child.key },
    { name: 'delay_ms', type: 'int8', pick: ({ record }) => record.child.delayMs },
    { name: 'deduplication_id', type: 'text', pick: ({ record }) => record.child.deduplication?.id ?? null },
    { name: 'window_ms', type: 'int8', pick: ({ record }) => record.child.deduplication?.windowMs ?? null },
    { name: 'on_conflict', type: 'text', pick: ({ record }) => record.child.deduplication?.onConflict ?? null },
    { name: 'cancelled_error', type: 'text', pick: ({ record }) => record.child.deduplication?.cancelledError ?? null },
    { name: 'debounce_key', type: 'text', pick: ({ record }) => record.child.debounce?.key ?? null },
    { name: 'max_wait_ms', type: 'int8', pick: ({ record }) => record.child.debounce?.maxWaitMs ?? null },
  ],
  returns: ['child_id'],
  // As for intents. Deduplication IDs come in any order: two that are taken crosswise time out, and are split.
  order: 'child_id',
};

const SUSPENSION: ApartFunction<PendingSuspension> = {
  name: 'suspend_workflow',
  parameters: [
    ...ownership<PendingSuspension>(),
    { name: 'waits', type: 'text', pick: ({ waits }) => JSON.stringify(waits), as: 'r.waits::jsonb' },
  ],
  returns: [],
  order: 'workflow_id',
};

/** The other functions are alike, and say themselves what their parameters are. */
function functionOf({ functionName, types }: ProtocolCall<unknown>): ApartFunction<PendingCall> {
  return {
    name: functionName,
    parameters: [
      ...ownership<PendingCall>(),
      ...types.map((type, index) => ({
        name: `p${String(index)}`,
        type,
        pick: ({ call }: PendingCall) => call.values[index] ?? null,
      })),
    ],
    returns: ['reply'],
    order: 'workflow_id',
  };
}

export interface ApartStatement {
  readonly text: string;
  readonly parameters: readonly SqlParameter[];
}

/** One statement that calls the function of these writes, which are of one function, once for each. */
export function apartStatement(schema: string, writes: readonly ApartWrite[]): ApartStatement {
  const [first] = writes;
  switch (first?.kind) {
    case undefined:
      throw new TypeError('Nothing to write.');
    case 'intent':
      return statementOf(schema, INTENT, writes as readonly PendingIntent[]);
    case 'enqueue':
      return statementOf(schema, ENQUEUE, writes as readonly PendingEnqueue[]);
    case 'suspension':
      return statementOf(schema, SUSPENSION, writes as readonly PendingSuspension[]);
    case 'call':
      return statementOf(schema, functionOf(first.call), writes as readonly PendingCall[]);
  }
}

function statementOf<Write>(
  schema: string,
  { name, parameters, returns, order }: ApartFunction<Write>,
  writes: readonly Write[],
): ApartStatement {
  const columns = parameters.map((parameter) => parameter.name).join(', ');
  const arrays = parameters.map(({ type }, index) => `$${String(index + 1)}::${type}[]`).join(', ');
  const passed = parameters.map((parameter) => parameter.as ?? `r.${parameter.name}`).join(', ');
  return {
    text: [
      'SELECT r.item::int4 AS item, a.answer, a.found_status, a.found_epoch::float8 AS found_epoch,',
      `  ${['a.found_version::float8 AS found_version', 'a.found_detail', ...returns.map((column) => `a.${column}`)].join(', ')}`,
      `FROM (SELECT * FROM unnest(${arrays}) WITH ORDINALITY AS u (${columns}, item) ORDER BY ${order} COLLATE "C") r`,
      `CROSS JOIN LATERAL "${schema}".${name}(${passed}) a`,
    ].join('\n'),
    parameters: parameters.map(({ pick }) => writes.map(pick)),
  };
}
