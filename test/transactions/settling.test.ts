import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import {
  checkpointOne,
  ProtocolBench,
  register,
  start,
  type Ask,
  type Owner,
  type Session,
} from '../store/support-protocol.js';

const MARKER = 'settling';
const NONCE = randomUUID();

let bench: ProtocolBench;
let transaction: Session;
let owner: Owner;
beforeAll(async () => {
  bench = await ProtocolBench.open();
  await register(bench.ask, 'owner');
  transaction = await bench.session();
});
afterAll(() => bench.close());
beforeEach(async () => {
  owner = { id: `w-${randomUUID()}`, token: randomUUID(), version: 1 };
  await start(bench.ask, owner);
});

const begin = async (ask: Ask): Promise<void> => {
  await ask('BEGIN');
  await ask(`SET LOCAL holdfast.transaction = '${MARKER}'`);
};
const conclude = (ask: Ask, token = owner.token): Promise<unknown> =>
  ask(`CALL holdfast.conclude_transaction($1, $2, $3, $4, $5, 0, 'pay', '1', 1, NULL, 3)`, [
    MARKER,
    owner.id,
    token,
    owner.version,
    NONCE,
  ]);
const settle = async (): Promise<unknown> => {
  const [row] = await bench.ask(`SELECT holdfast.settle_transaction($1, $2, $3, 0, $4) AS is_recorded`, [
    owner.id,
    owner.token,
    owner.version,
    NONCE,
  ]);
  return row?.['is_recorded'];
};
const versionOf = async (): Promise<unknown> =>
  (
    await bench.ask('SELECT record_version::int AS version FROM holdfast.workflow_status WHERE workflow_id = $1', [
      owner.id,
    ])
  )[0]?.['version'];

describe('C9 a transaction whose record and COMMIT were not answered', () => {
  test('they arrive when it has been settled that they did not: refused, and the owner goes on at the next version', async () => {
    await begin(transaction.ask);
    expect(await settle()).toBe(false);
    await expect(conclude(transaction.ask)).rejects.toMatchObject({
      code: 'HF021',
      detail: JSON.stringify({ answer: 'conflict', version: 2, detail: null })
        .replaceAll(':', ' : ')
        .replaceAll(',', ', '),
    });
    await transaction.ask('COMMIT');
    expect(await settle()).toBe(false);
    expect(await versionOf()).toBe(2);
    expect(await checkpointOne(bench.ask, { ...owner, version: 2 }, { seq: 0 })).toMatchObject({ answer: null });
  });

  test('they have arrived: it is recorded, however often it is asked, and nothing is written', async () => {
    await begin(transaction.ask);
    await conclude(transaction.ask);
    await transaction.ask('COMMIT');
    expect(await settle()).toBe(true);
    expect(await settle()).toBe(true);
    expect(await versionOf()).toBe(2);
  });

  test('the record has arrived and COMMIT has not: it is not settled before the transaction has ended', async () => {
    await begin(transaction.ask);
    await conclude(transaction.ask);
    await expect(settle()).rejects.toMatchObject({ code: '55P03' });
    await transaction.ask('ROLLBACK');
    expect(await settle()).toBe(false);
    expect(await versionOf()).toBe(2);
  });

  test('what is refused is not committed: another owner, a transaction that the body has ended', async () => {
    await begin(transaction.ask);
    await expect(conclude(transaction.ask, randomUUID())).rejects.toMatchObject({
      code: 'HF021',
      detail: expect.stringContaining('"lost"') as string,
    });
    expect(await transaction.ask('COMMIT')).toEqual([]);
    await transaction.ask('BEGIN');
    await expect(conclude(transaction.ask)).rejects.toMatchObject({
      code: 'HF021',
      detail: expect.stringContaining('"ended"') as string,
    });
    await transaction.ask('ROLLBACK');
    expect(await versionOf()).toBe(1);
  });
});
