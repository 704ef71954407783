import type { LiveEvents } from './live.ts';
import { createStore, type Store } from './store.ts';
import { activityKey } from './tool-activity.ts';

export interface HeardTurn {
  readonly turnId: string;
  /** Time by the clock of this tab, which orders it among the messages. */
  readonly heardAtMs: number;
}

/** The newest turn of a conversation, by `activityKey`. */
export type TurnIds = ReadonlyMap<string, HeardTurn>;

const maxConversations = 40;

/** Notes the turn that each conversation has begun last: an answer that fails carries no id. */
export function createTurnIds(live: Pick<LiveEvents, 'listen'>): Store<TurnIds> {
  const turns = createStore<TurnIds>(new Map());
  live.listen(({ kind, payload }) => {
    if (kind !== 'message:received' || typeof payload !== 'object' || payload === null) return;
    const { agentId, sessionKey, turnId } = payload as Record<string, unknown>;
    if (typeof agentId !== 'string' || typeof sessionKey !== 'string' || typeof turnId !== 'string') return;
    const next = new Map(turns.get());
    const key = activityKey(agentId, sessionKey);
    next.delete(key);
    next.set(key, { turnId, heardAtMs: Date.now() });
    for (const oldest of next.keys()) {
      if (next.size <= maxConversations) break;
      next.delete(oldest);
    }
    turns.set(next);
  });
  return turns;
}
