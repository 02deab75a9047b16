import 'reflect-metadata';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Step, Workflow } from '../../src/index.js';
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
