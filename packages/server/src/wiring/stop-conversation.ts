import type { SessionsApi } from '../features/conversations/sessions/api.ts';
import type { Turns } from '../features/conversations/turns/turns.ts';
import type { Autonomy } from '../features/delegation/autonomy/autonomy.ts';
import { AppError } from '../kernel/app-error.ts';
import type { CallContext } from '../kernel/call-context.ts';
import type { HandlersOf } from '../kernel/handlers.ts';
import { stopConversation } from '../transactions/stop-conversation.ts';
import type { Assembly } from './assembly.ts';
import type { Late } from './late.ts';
import type { RootTurns } from './root-turns.ts';

export interface StopConversationDeps {
  readonly turns: Pick<Turns, 'stop'>;
  readonly autonomy: Pick<Autonomy, 'methods'>;
  readonly rootTurns: Late<RootTurns>;
}

/**
 * Returns the stop of a conversation, for somebody who writes in it: its running and waiting turns with everything that they started are
 * killed like by `run.kill`, and its queued messages get no turn. It returns how many of both there were.
 */
export function createStopConversation({ db, clock }: Pick<Assembly, 'db' | 'clock'>, { turns, autonomy, rootTurns }: StopConversationDeps) {
  async function kill(rootRunId: string, call: CallContext): Promise<boolean> {
    try {
      await autonomy.methods['run.kill']({ rootRunId }, call);
      return true;
    } catch (error) {
      // It has ended in the meantime.
      if (!(error instanceof AppError)) throw error;
      return false;
    }
  }

  return async (conversationRef: string, call: CallContext): Promise<{ readonly turns: number; readonly messages: number }> => {
    // Before its turns end: what waits behind them must not begin.
    const { messages, roots } = await db.write(stopConversation, { ref: conversationRef, atMs: clock.now() });
    const running = rootTurns.value.all().filter((turn) => turn.conversationRef === conversationRef);
    let killed = 0;
    for (const rootRunId of new Set([...running.map((turn) => turn.rootRunId), ...roots])) if (await kill(rootRunId, call)) killed += 1;
    turns.stop({ conversationRef }, new AppError('cancelled', 'Stopped on request'));
    return { turns: killed, messages };
  };
}

/** `session.stop`: the same for a caller of the API who may use the conversation. */
export function createSessionStop(deps: {
  readonly existing: SessionsApi['existing'];
  readonly stop: ReturnType<typeof createStopConversation>;
}): HandlersOf<'session.stop'> {
  return {
    'session.stop': async (address, call) => {
      if (call.agentCaller !== undefined) throw new AppError('denied', 'session.stop is for people, not for agents');
      const { ref, sessionKey, agentId } = await deps.existing(address, call);
      return { conversationRef: ref, sessionKey, agentId, ...(await deps.stop(ref, call)) };
    },
  };
}
