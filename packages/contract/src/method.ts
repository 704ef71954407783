import type * as z from 'zod';
import type { ErrorCode } from './errors.ts';
import { once } from './once.ts';
import type { MethodScope } from './scopes.ts';

/** Effect of a call: decides the audit class and what a tool policy may allow. */
export type Risk = 'read' | 'mutate' | 'destructive';

/** One JSON-RPC method, declared once; validation, scope check, typed client, command line and documents come from here. */
export interface Method<Params extends z.ZodType = z.ZodType, Result extends z.ZodType = z.ZodType> {
  readonly scope: MethodScope;
  readonly risk: Risk;
  /** One sentence in the third person. */
  readonly summary: string;
  /** Further facts for the reference: units, errors, side effects. */
  readonly description?: string;
  /** A strict object: unknown parameters are refused. */
  readonly params: Params;
  readonly result: Result;
  /** Catalogue codes that callers should expect in addition to those of every call. */
  readonly errors?: readonly ErrorCode[];
  /** One or more; a conformance test parses both sides. */
  readonly examples: readonly { readonly params: z.input<Params>; readonly result: z.input<Result> }[];
  /** Version that introduced it. */
  readonly since: string;
}

/** A method as it is written: its schemas are functions, so that a process builds only those of the methods that it uses. */
interface Declaration<Params extends z.ZodType, Result extends z.ZodType> extends Omit<Method<Params, Result>, 'params' | 'result'> {
  readonly params: () => Params;
  readonly result: () => Result;
}

/** Declares a method; builds both schemas when they are first read. */
export function method<Params extends z.ZodType, Result extends z.ZodType>(declaration: Declaration<Params, Result>): Method<Params, Result> {
  const params = once(declaration.params);
  const result = once(declaration.result);
  return {
    ...declaration,
    get params() {
      return params();
    },
    get result() {
      return result();
    },
  };
}
