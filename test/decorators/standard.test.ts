import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  Holdfast,
  OutcomeUnknownError,
  Step,
  Workflow,
  defineWorkflow,
  runStep,
  step,
  type Reconciliation,
} from '../../src/index.js';
import { createBed, silentLogger, type Bed } from '../support/launch.js';

let bed: Bed;
beforeAll(async () => {
  bed = await createBed();
});
afterAll(() => bed.close());

class Shop {
  @Step()
  static async price(cents: number): Promise<number> {
    return Promise.resolve(cents * 2 + (step().seq === 0 ? 0 : 1_000));
  }

  @Workflow()
  static async buy(cents: number): Promise<number> {
    return Shop.price(cents);
  }

  @Workflow({ name: 'shop.viaThis' })
  static async viaThis(cents: number): Promise<number> {
    return this.price(cents);
  }
}

class Payments {
  constructor(readonly region: string) {}

  @Step()
  async charge(cents: number): Promise<string> {
    return Promise.resolve(`${this.region}:${String(cents)}`);
  }

  @Workflow()
  async pay(cents: number): Promise<string> {
    return this.charge(cents);
  }
}

test('static methods are started by reference, and called directly', async () => {
  const holdfast = await bed.launch({ workflows: [Shop] });
  // eslint-disable-next-line @typescript-eslint/unbound-method -- Holdfast binds it
  expect(await (await holdfast.start(Shop.buy, {}, 4)).result()).toBe(8);
  expect(await Shop.buy(5)).toBe(10);
  expect(await Shop.viaThis(6)).toBe(12);
  await holdfast.close();
});

test('C65 two objects of one class are told apart by their names, and recovery finds the right one', async () => {
  const eu = new Payments('eu');
  const us = new Payments('us');
  const workflows = [
    { name: 'eu', instance: eu },
    { name: 'us', instance: us },
  ];
  const holdfast = await bed.launch({ workflows });
  expect(await Promise.all([eu.pay(1), us.pay(2)])).toEqual(['eu:1', 'us:2']);
  // eslint-disable-next-line @typescript-eslint/unbound-method -- Holdfast binds it to the named object
  const handle = await holdfast.start(us.pay, { instance: 'us', workflowId: 'us-1' }, 3);
  expect(await handle.result()).toBe('us:3');
  await holdfast.admin.rewind('us-1', { toStep: 0 });
  expect(await handle.result()).toBe('us:3');
  // eslint-disable-next-line @typescript-eslint/unbound-method -- as above
  await expect(holdfast.start(us.pay, {}, 3)).rejects.toMatchObject({ code: 'WORKFLOW_NOT_REGISTERED' });
  await holdfast.close();
});

test('a direct call says what to do when no Holdfast, or more than one, is launched with the workflow', async () => {
  await expect(Shop.buy(1)).rejects.toMatchObject({ code: 'NOT_LAUNCHED' });
  const one = await bed.launch({ workflows: [Shop] });
  const two = await bed.launch({ workflows: [Shop] });
  await expect(Shop.buy(1)).rejects.toMatchObject({ code: 'NOT_LAUNCHED' });
  await two.close();
  expect(await Shop.buy(1)).toBe(2);
  await one.close();
});

test('C66 a duplicate name, a class without workflows, and a plain function are refused at launch', async () => {
  const launch = (workflows: object[]): Promise<Holdfast> =>
    Holdfast.launch({ workflows, database: bed.database.url, logger: silentLogger });
  const one = defineWorkflow('same', () => Promise.resolve(1));
  const two = defineWorkflow('same', () => Promise.resolve(2));
  await expect(launch([one, two])).rejects.toMatchObject({ code: 'REGISTRATION_INVALID' });
  await expect(
    launch([
      class Empty {
        readonly none = 1;
      },
    ]),
  ).rejects.toMatchObject({ code: 'REGISTRATION_INVALID' });
  await expect(launch([() => Promise.resolve()])).rejects.toMatchObject({ code: 'REGISTRATION_INVALID' });
});

test('C66 a symbol or private method needs a name, and decorating anything but a method is refused', () => {
  const key = Symbol('secret');
  expect(() => {
    class Odd {
      @Step()
      async [key](): Promise<void> {
        return Promise.resolve();
      }
    }
    return Odd;
  }).toThrow(expect.objectContaining({ code: 'REGISTRATION_INVALID' }));
  expect(() => defineWorkflow('', () => Promise.resolve())).toThrow(
    expect.objectContaining({ code: 'REGISTRATION_INVALID' }),
  );
  expect(() => Step({ retries: { maxAttempts: 0 } })(Shop, 'x', { value: () => Promise.resolve() })).toThrow(
    expect.objectContaining({ code: 'INVALID_ARGUMENT' }),
  );
  expect(() => Step({ timeout: 'soon' as '1s' })(Shop, 'x', { value: () => Promise.resolve() })).toThrow(
    expect.objectContaining({ code: 'INVALID_ARGUMENT' }),
  );
});

test('names do not depend on class or function names, which minifiers change', async () => {
  const holdfast = await bed.launch({ workflows: [Shop] });
  await Shop.buy(1);
  expect((await holdfast.admin.list({ name: 'buy' })).items.length).toBeGreaterThan(0);
  await holdfast.close();
});

test('decorated methods keep working as plain code outside workflows', async () => {
  expect(await new Payments('eu').charge(7)).toBe('eu:7');
  expect(await runStep('x', () => Promise.resolve(1))).toBe(1);
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

  @Workflow({ name: 'bank.static' })
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

  @Workflow({ name: 'bank.instance' })
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
