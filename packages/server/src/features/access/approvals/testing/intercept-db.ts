import type { TestServerOptions } from '@gatehouse/testkit';

export interface DbCall {
  readonly operation: string;
  readonly input: Readonly<Record<string, unknown>>;
}

/** Lets a test run code before, after or instead of each write to the database, or each read as well. */
export function interceptDb(
  around: (call: DbCall, run: () => Promise<unknown>) => Promise<unknown>,
  which: readonly ('write' | 'read')[] = ['write'],
): NonNullable<TestServerOptions['db']> {
  return (inner) =>
    new Proxy(inner, {
      get(target, name) {
        const member: unknown = Reflect.get(target, name);
        if (typeof member !== 'function') return member;
        if (!which.some((one) => one === name)) return (...given: unknown[]): unknown => Reflect.apply(member, target, given);
        return (operation: { readonly name: string }, input: DbCall['input']) =>
          around({ operation: operation.name, input }, async () => Reflect.apply(member, target, [operation, input]));
      },
    });
}
