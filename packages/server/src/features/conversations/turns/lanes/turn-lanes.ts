import type { Lanes, Lease } from '../../../../kernel/lane.ts';
import type { Agent } from '../../../agents/agents/api.ts';
import type { ConversationTarget } from '../../sessions/api.ts';
import type { KeptLanes } from './kept-lanes.ts';

/** A turn that is to run in the lane of its conversation. */
export interface TurnEntry {
  readonly target: ConversationTarget;
  readonly agent: Agent;
  /** False for a completion of `/v1`, whose conversation cannot be found. */
  readonly kept: boolean;
  readonly signal: AbortSignal;
  /** Work whose parked turn may return to its lane; others throw `LaneKeptError` while a lane is kept. A full lane throws `LaneFullError`. */
  readonly workId?: string;
  /** Set for turns that do not count among the turns of their agent, because their requester may hold one of those slots. */
  readonly delegated?: boolean;
}

export interface TurnLanes {
  /** Waits for the conversation's lane and a slot among the agent's turns, then runs. */
  enter<T>(entry: TurnEntry, work: () => Promise<T>): Promise<T>;
  /** Returns how many turns wait for their lane or their agent. */
  queued(): number;
  /** Call when work waits behind a conversation: resumes it immediately if the lane was freed meanwhile. */
  waitBehind(conversationRef: string): Promise<void>;
}

export interface TurnLanesDeps {
  readonly lanes: Pick<Lanes, 'acquire' | 'counts' | 'isKept'>;
  readonly keptLanes: Pick<KeptLanes, 'has' | 'free'>;
  /** Marks the conversation as existing, even before its first turn has ended, until the returned function is called. */
  readonly entered: (target: ConversationTarget) => () => void;
  /** Assigns what runs inside to the conversation in traces; absent without traces. */
  readonly inConversation?: (<T>(conversationRef: string, run: () => Promise<T>) => Promise<T>) | undefined;
  readonly resumeWaiting: (conversationRef: string) => Promise<void>;
}

/** Runs the turns of a conversation one after the other, and as many of an agent at once as its configuration allows. */
export function createTurnLanes({ lanes, keptLanes, entered, inConversation, resumeWaiting }: TurnLanesDeps): TurnLanes {
  return {
    async enter({ target, agent, kept, signal, delegated, workId }, work) {
      const { ref, principalId } = target;
      const leave = kept ? entered(target) : undefined;
      const [group, groupLimit] = delegated === true ? ['delegated', Number.MAX_SAFE_INTEGER] : [agent.id, agent.config.maxConcurrentRuns];
      let lease: Lease | undefined;
      // Every turn passes here, and a `using` declaration costs as much as the lane.
      try {
        const continues = workId !== undefined && keptLanes.has(workId);
        lease = await lanes.acquire({ key: ref, group, groupLimit, principalId, signal, continues, yields: workId !== undefined });
        if (workId !== undefined) keptLanes.free(workId);
        return await (inConversation === undefined ? work() : inConversation(ref, work));
      } finally {
        leave?.();
        lease?.release();
      }
    },
    queued: () => lanes.counts().queued,
    async waitBehind(conversationRef) {
      if (!lanes.isKept(conversationRef)) await resumeWaiting(conversationRef);
    },
  };
}
