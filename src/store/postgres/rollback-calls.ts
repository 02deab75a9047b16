import type { SqlRow } from '../../drivers/driver.js';
import type { CompensationFailure, PlannedCompensation, RollbackRecord } from '../rollback-store.js';
import type { WriteAnswer } from '../store.js';
import type { ProtocolCall } from './protocol-call.js';

// How what executions write of rollbacks is said to the functions of the protocol. It travels behind what the execution has sent
// before: whatever it has done is on record when the rollback begins.

export function beginRollbackCall({ seq, cause, error }: RollbackRecord): ProtocolCall<WriteAnswer> {
  return call('begin_rollback', ['int4', 'text', 'text'], [seq, cause, error]);
}

export function planRollbackCall(plan: readonly PlannedCompensation[]): ProtocolCall<WriteAnswer> {
  return call('plan_rollback', ['text'], [JSON.stringify(plan)]);
}

export function failCompensationCall({ seq, error, detail }: CompensationFailure): ProtocolCall<WriteAnswer> {
  return call('fail_compensation', ['int4', 'text', 'text'], [seq, error, detail]);
}

export type PlanRow = PlannedCompensation & SqlRow;

export function readPlan(schema: string): string {
  return `SELECT seq, name, undoes FROM "${schema}".list_rollback($1::text) WHERE state IS NOT NULL ORDER BY seq`;
}

function call(
  functionName: string,
  types: ProtocolCall<WriteAnswer>['types'],
  values: ProtocolCall<WriteAnswer>['values'],
): ProtocolCall<WriteAnswer> {
  const answerOf: ProtocolCall<WriteAnswer>['answerOf'] = ({ answer }) =>
    answer === null ? { kind: 'written' } : undefined;
  return { functionName, types, values, seq: undefined, answerOf };
}
