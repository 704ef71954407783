import type { MethodName, Params, ResultInput } from '@gatehouse/contract';
import type { CallContext } from './call-context.ts';

/** One handler per registered method; a missing one is a compile error in `server.ts` that names it. */
export type Handlers = { readonly [M in MethodName]: (params: Params<M>, call: CallContext) => Promise<ResultInput<M>> };

/** The handlers of one feature: `HandlersOf<'tokens.list' | 'tokens.create'>`. */
export type HandlersOf<M extends MethodName> = Pick<Handlers, M>;
