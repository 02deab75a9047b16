import { expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import { defineWorkflow, runStep, Step, Workflow, type Holdfast, type WorkflowHandle } from '../../src/index.js';

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
