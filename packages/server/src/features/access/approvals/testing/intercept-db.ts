import type { TestServerOptions } from '@gatehouse/testkit';

export interface DbCall {
  readonly operation: string;
  readonly input: Readonly<Record<string, unknown>>;
}

/** Lets a test run code before, after or instead of each database operation. */
export function interceptDb(around: (call: DbCall, run: () => Promise<unknown>) => Promise<unknown>): NonNullable<TestServerOptions['db']> {
  return (inner) =>
    new Proxy(inner, {
      get(target, name) {
        const member: unknown = Reflect.get(target, name);
        if (typeof member !== 'function') return member;
        if (name !== 'write') return (...given: unknown[]): unknown => Reflect.apply(member, target, given);
        return (operation: { readonly name: string }, input: DbCall['input']) =>
          around({ operation: operation.name, input }, async () => Reflect.apply(member, target, [operation, input]));
      },
    });
}
