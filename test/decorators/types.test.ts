import type pg from 'pg';
import { expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import {
  defineWorkflow,
  runStep,
  startEmbeddedPostgres,
  Step,
  Workflow,
  type AsyncMethodDecorator,
  type Holdfast,
  type Reconciliation,
  type RunningServer,
  type StepDecorator,
  type WorkflowHandle,
} from '../../src/index.js';

// Nothing here runs: it compiles, and what must not compile does not.

class Shop {
  @Workflow({ input: z.object({ id: z.string() }) })
  static async order(order: { id: string }, express: boolean): Promise<{ total: number }> {
    return Promise.resolve({ total: express ? order.id.length : 0 });
  }
}

test('arguments and results flow through start, handles and direct calls', () => {
  const use = async (holdfast: Holdfast): Promise<void> => {
    // eslint-disable-next-line @typescript-eslint/unbound-method -- Holdfast binds it
    const { order } = Shop;
    const handle = await holdfast.start(order, {}, { id: 'a' }, true);
    expectTypeOf(handle).toEqualTypeOf<WorkflowHandle<{ total: number }>>();
    expectTypeOf(await handle.result()).toEqualTypeOf<{ total: number }>();
    expectTypeOf(await Shop.order({ id: 'a' }, true)).toEqualTypeOf<{ total: number }>();
    // @ts-expect-error -- a wrong argument
    await holdfast.start(order, {}, { id: 1 }, true);
    // @ts-expect-error -- a missing argument
    await holdfast.start(order, {}, { id: 'a' });
    // @ts-expect-error -- an unknown option
    await holdfast.start(order, { id: 'x' }, { id: 'a' }, true);
    // @ts-expect-error -- a duration without a unit that is known
    await holdfast.start(order, { timeout: '3 weeks' }, { id: 'a' }, true);
    expectTypeOf(await runStep('x', () => Promise.resolve(1))).toEqualTypeOf<number>();
    const doubled = defineWorkflow('doubled', (n: number) => Promise.resolve(n * 2));
    expectTypeOf(doubled).toEqualTypeOf<(n: number) => Promise<number>>();
    // @ts-expect-error -- a synchronous body
    await runStep('x', () => 1);
  };
  expectTypeOf(use).toBeFunction();
});

test('a schema has to make what the workflow takes and returns', () => {
  const named = z.object({ name: z.string() });
  const wrong = (): unknown => {
    // @ts-expect-error -- the body takes a number
    defineWorkflow('input', (n: number) => Promise.resolve(n), { input: named });
    // @ts-expect-error -- the body returns a number
    defineWorkflow('output', () => Promise.resolve(1), { output: named });
    defineWorkflow('parsed', (at: Date) => Promise.resolve(at), { input: z.coerce.date(), output: z.date() });
    class Wrong {
      // @ts-expect-error -- the method takes a number
      @Workflow({ input: named })
      static async takes(n: number): Promise<number> {
        return Promise.resolve(n);
      }
    }
    return Wrong;
  };
  expectTypeOf(wrong).toBeFunction();
});

test('a reconcile has to fit its step', () => {
  const find = (_id: string): Promise<Reconciliation<number>> => Promise.resolve({ stillUnknown: true });
  const wrong = (): unknown => {
    class Bank {
      @Step({ reconcile: find })
      static async fits(_id: string, _cents: number): Promise<number> {
        return Promise.resolve(1);
      }

      @Step({ reconcile: (id: string): Promise<Reconciliation<number>> => find(id) })
      async inline(_id: string): Promise<number> {
        return Promise.resolve(1);
      }

      @Step({ reconcile: 'named' })
      static async byName(_id: string): Promise<number> {
        return Promise.resolve(1);
      }

      // @ts-expect-error -- another result
      @Step({ reconcile: find })
      static async result(_id: string): Promise<string> {
        return Promise.resolve('');
      }

      // @ts-expect-error -- other arguments
      @Step({ reconcile: find })
      static async takes(_id: Date): Promise<number> {
        return Promise.resolve(1);
      }

      // @ts-expect-error -- no answer
      @Step({ reconcile: () => Promise.resolve(true) })
      static async answers(): Promise<number> {
        return Promise.resolve(1);
      }

      // @ts-expect-error -- an unknown option
      @Step({ reconcile: find, atMostTwice: true })
      static async unknown(_id: string): Promise<number> {
        return Promise.resolve(1);
      }
    }
    void runStep('x', () => Promise.resolve(1), { reconcile: () => find('x') });
    // @ts-expect-error -- another result
    void runStep('x', () => Promise.resolve('x'), { reconcile: () => find('x') });
    // @ts-expect-error -- there is no class to look in
    void runStep('x', () => Promise.resolve(1), { reconcile: 'find' });
    return Bank;
  };
  expectTypeOf(wrong).toBeFunction();
});

test('a pool is no transaction', () => {
  const use = async (holdfast: Holdfast, pool: pg.Pool, client: pg.PoolClient): Promise<void> => {
    const one = defineWorkflow('one', () => Promise.resolve(1));
    await holdfast.enqueue(one, { transaction: client });
    // @ts-expect-error -- each of its queries may go through another connection
    await holdfast.enqueue(one, { transaction: pool });
  };
  expectTypeOf(use).toBeFunction();
});

test('what is made once and exported, for others to use, has a type that can be named', () => {
  const use = (): { step: StepDecorator<undefined, undefined>; workflow: AsyncMethodDecorator } => ({
    step: Step({ timeout: '1s' }),
    workflow: Workflow({ timeout: '1s' }),
  });
  expectTypeOf(use).toBeFunction();
  expectTypeOf(startEmbeddedPostgres).returns.resolves.toEqualTypeOf<RunningServer>();
});

test('a method that is not asynchronous cannot be decorated', () => {
  const wrong = (): unknown => {
    class Wrong {
      // @ts-expect-error -- returns no promise
      @Step()
      now(): number {
        return 1;
      }
    }
    return Wrong;
  };
  expectTypeOf(wrong).toBeFunction();
});
