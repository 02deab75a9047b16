import 'reflect-metadata';

import { expect, test } from 'vitest';

function record(target: object, key: string, descriptor: PropertyDescriptor): PropertyDescriptor {
  Reflect.defineMetadata('recorded', typeof descriptor.value, target, key);
  return descriptor;
}

class Invoice {
  @record
  static send(_address: URL, _copies: number): Promise<string> {
    return Promise.resolve('sent');
  }

  @record
  pay(_at: Date): string {
    return 'paid';
  }
}

test('tests in this folder are compiled with experimentalDecorators and emitDecoratorMetadata', () => {
  expect(Reflect.getMetadata('recorded', Invoice, 'send')).toBe('function');
  expect(Reflect.getMetadata('design:paramtypes', Invoice, 'send')).toEqual([URL, Number]);
  expect(Reflect.getMetadata('design:returntype', Invoice, 'send')).toBe(Promise);
  expect(Reflect.getMetadata('design:paramtypes', Invoice.prototype, 'pay')).toEqual([Date]);
});
