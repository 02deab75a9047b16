import 'reflect-metadata';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { PoolClient } from 'pg';
import {
  OutcomeUnknownError,
  runTransaction,
  Step,
  step,
  Transaction,
  transaction,
  Workflow,
  type Reconciliation,
} from '../../src/index.js';
import { createBed, type Bed } from '../support/launch.js';

let bed: Bed;
beforeAll(async () => {
  bed = await createBed();
});
afterAll(() => bed.close());

/** As frameworks do it: metadata at the function. */
function Roles(...roles: string[]) {
  return (_target: object, _key: string, descriptor: PropertyDescriptor): void => {
    Reflect.defineMetadata('roles', roles, descriptor.value as object);
  };
}

class Shop {
  constructor(readonly factor: number) {}

  @Step()
  static async price(cents: number): Promise<number> {
    return Promise.resolve(cents * 2);
  }

  @Workflow({ name: 'legacy.buy' })
  static async buy(cents: number): Promise<number> {
    return Shop.price(cents);
  }

  @Step()
  async scale(cents: number): Promise<number> {
    return Promise.resolve(cents * this.factor);
  }

  @Workflow()
  @Roles('admin')
  async scaled(cents: number): Promise<number> {
    return this.scale(cents);
  }
}

test('the decorators work with experimentalDecorators, on static and instance methods', async () => {
  const shop = new Shop(3);
  await bed.launch({ workflows: [Shop, { name: 'three', instance: shop }] });
  expect(await Shop.buy(2)).toBe(4);
  expect(await shop.scaled(2)).toBe(6);
});

test("other decorators' metadata stays at the method", () => {
  // eslint-disable-next-line @typescript-eslint/unbound-method -- only looked at
  expect(Reflect.getMetadata('roles', Shop.prototype.scaled)).toEqual(['admin']);
});

test('C66 a method that is not asynchronous is refused when the class is evaluated', () => {
  expect(() => {
    class Wrong {
      // @ts-expect-error -- a wrong use does not compile; a plain JavaScript caller learns it at run time
      @Step()
      now(): number {
        return 1;
      }
    }
    return Wrong;
  }).toThrow(expect.objectContaining({ code: 'REGISTRATION_INVALID' }));
});

class Bank {
  readonly asked: unknown[] = [];

  @Step({ reconcile: 'find' })
  static async charge(cents: number): Promise<number> {
    return Promise.reject(new OutcomeUnknownError(`no reply about ${String(cents)}`));
  }

  static async find(this: unknown, cents: number): Promise<Reconciliation<number>> {
    return Promise.resolve({ happened: true, result: this === Bank ? cents : -1 });
  }

  @Workflow({ name: 'legacy.bank.static' })
  static async pay(cents: number): Promise<number> {
    return Bank.charge(cents);
  }

  @Step({ reconcile: 'findOf', atMostOnce: true })
  async chargeOf(cents: number, note: string): Promise<string> {
    return Promise.reject(new OutcomeUnknownError(`no reply about ${String(cents)} ${note}`));
  }

  async findOf(...args: unknown[]): Promise<Reconciliation<string>> {
    this.asked.push(args, step().name);
    return Promise.resolve({ happened: true, result: 'found' });
  }

  @Workflow({ name: 'legacy.bank.instance' })
  async payOf(cents: number): Promise<string> {
    return this.chargeOf(cents, 'a note');
  }
}

test('reconcile by name is a method of the class or object, called like the step', async () => {
  const bank = new Bank();
  await bed.launch({ workflows: [Bank, { name: 'bank', instance: bank }] });
  expect(await Bank.pay(3)).toBe(3);
  expect(await bank.payOf(4)).toBe('found');
  expect(bank.asked).toEqual([[4, 'a note'], 'chargeOf']);
});

test('a reconcile that the class does not have, or options that contradict each other, are refused', () => {
  const missing = (): unknown => {
    class Missing {
      @Step({ reconcile: 'nowhere' })
      static async charge(): Promise<number> {
        return Promise.resolve(1);
      }
    }
    return Missing;
  };
  const missingOfInstance = (): unknown => {
    class Missing {
      @Step({ reconcile: 'nowhere' })
      async charge(): Promise<number> {
        return Promise.resolve(1);
      }
    }
    return new Missing();
  };
  const contradiction = (): unknown => {
    class Contradiction {
      @Step({ atMostOnce: true, retries: { maxAttempts: 2 } })
      static async charge(): Promise<number> {
        return Promise.resolve(1);
      }
    }
    return Contradiction;
  };
  expect(missing).toThrow(expect.objectContaining({ code: 'REGISTRATION_INVALID' }));
  expect(missingOfInstance).toThrow(expect.objectContaining({ code: 'REGISTRATION_INVALID' }));
  expect(contradiction).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }));
});

class Ledger {
  readonly undone: unknown[] = [];

  constructor(readonly account: string) {}

  @Transaction({ isolation: 'repeatable read' })
  static async open(account: string): Promise<string> {
    await transaction<PoolClient>().client.query('INSERT INTO ledger VALUES ($1, 0)', [account]);
    return account;
  }

  @Transaction({ compensate: 'take' })
  async add(cents: number): Promise<number> {
    const text = 'UPDATE ledger SET cents = cents + $2 WHERE account = $1 RETURNING cents';
    const { rows } = await transaction<PoolClient>().client.query<{ cents: number }>(text, [this.account, cents]);
    return rows[0]?.cents ?? 0;
  }

  @Step()
  async take(_sum: number, cents: number): Promise<void> {
    this.undone.push(cents);
    return Promise.resolve();
  }

  @Workflow({ name: 'legacy.ledger' })
  async fill(fails: boolean): Promise<number> {
    if (!fails) await Ledger.open(this.account);
    const sum = await this.add(5);
    if (fails) throw new RangeError('full');
    return sum;
  }
}

test('transactions are static and instance methods, and are compensated', async () => {
  await bed.sql.query('CREATE TABLE ledger (account text PRIMARY KEY, cents int NOT NULL)');
  const ledger = new Ledger('anna');
  await bed.launch({ workflows: [{ name: 'ledger', instance: ledger }] });
  expect(await ledger.fill(false)).toBe(5);
  await expect(ledger.fill(true)).rejects.toMatchObject({ message: 'full' });
  expect(ledger.undone).toEqual([5]);
});

test('a compensate of a transaction that is not there is refused', () => {
  const missing = (): unknown => {
    class Missing {
      @Transaction({ compensate: 'nowhere' })
      static async write(): Promise<void> {
        await Promise.resolve();
      }
    }
    return Missing;
  };
  expect(missing).toThrow(expect.objectContaining({ code: 'REGISTRATION_INVALID' }));
  expect(() => runTransaction('write', () => Promise.resolve(), { compensate: 'nowhere' })).toThrow(
    expect.objectContaining({ code: 'INVALID_ARGUMENT' }),
  );
});

test.each([
  ['Step', Step],
  ['Transaction', Transaction],
  ['Workflow', Workflow],
])('@%s without parentheses is refused, on static and instance methods', (name, decorator) => {
  // What the compiler calls it with; it refuses that, but a transpiler does not.
  const undecorated = decorator as unknown as MethodDecorator;
  const message = `Write @${name}(), with parentheses.`;
  expect(() => {
    class OfInstances {
      @undecorated
      async act(): Promise<void> {
        await Promise.resolve(this);
      }
    }
    return OfInstances;
  }).toThrow(message);
  expect(() => {
    class Static {
      @undecorated
      static async act(): Promise<void> {
        await Promise.resolve();
      }
    }
    return Static;
  }).toThrow(message);
});
