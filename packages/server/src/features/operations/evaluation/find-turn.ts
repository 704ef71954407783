import { AppError } from '../../../kernel/app-error.ts';
import type { CallContext } from '../../../kernel/call-context.ts';
import type { HandlersOf } from '../../../kernel/handlers.ts';
import type { TurnRow } from '../../conversations/turns/api.ts';

export interface FindTurnDeps {
  readonly turnById: (id: string) => Promise<TurnRow | undefined>;
  readonly getTrace: HandlersOf<'obs.trace.get'>['obs.trace.get'];
}

/** Finds a turn by what people have at hand. */
export type FindTurn = (ref: string, call: CallContext) => Promise<TurnRow>;

/** Returns the turn that a reference names: the id of a turn, of one of its parts, or of a trace; throws `not_found`. */
export function createFindTurn(deps: FindTurnDeps): FindTurn {
  return async (ref, call) => {
    const id = ref.startsWith('tn_') ? ref : await firstOfTrace(deps, ref, call);
    const turn = id === undefined ? undefined : await deps.turnById(id.split('.', 1)[0] ?? id);
    if (turn === undefined) throw new AppError('not_found', 'Turn not found', { param: 'ref' });
    return turn;
  };
}

async function firstOfTrace({ getTrace }: FindTurnDeps, ref: string, call: CallContext): Promise<string | undefined> {
  const { records } = await getTrace({ ref }, call);
  return records.find(({ kind, traceId }) => kind === 'turn' && traceId === ref)?.id;
}
