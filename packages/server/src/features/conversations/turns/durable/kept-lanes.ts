import type { Lanes } from '../../../../kernel/lane.ts';
import type { ConversationTarget } from '../../sessions/api.ts';
import type { LeftInLane } from './durable.ts';

/** Knows the turns that wait for a person, and keeps their lanes: messages that come meanwhile run after the turn, in their order. */
export interface KeptLanes {
  keep(turn: LeftInLane): void;
  /** Whether a lane is kept for this work. */
  has(workId: string): boolean;
  /** The agent of the turn is suspended: its lane is free, and the turn comes back when the agent is resumed. */
  free(workId: string): void;
  /** The turn is back in its lane, or was stopped. */
  release(workId: string): void;
  /** The turns that have not come back. */
  all(): readonly LeftInLane[];
  /** A claim of the work ended: what was left by an earlier one has no turn to come back for any more, unless the item waits for its agent. */
  claimEnded(work: { readonly id: string; readonly fence: number }, waitsForAgent: boolean): void;
}

export function createKeptLanes(
  lanes: Pick<Lanes, 'keep' | 'unkeep'>,
  /** A lane is free again: work may wait behind it. */
  freed: (conversationRef: string) => void,
  /** The conversation exists, also before its first turn has ended, until what this returns is called. */
  entered: (target: ConversationTarget) => () => void,
): KeptLanes {
  const left = new Map<string, LeftInLane & { readonly leave: () => void }>();
  /** Those whose lanes are kept. */
  const kept = new Set<string>();

  function free(workId: string): void {
    const turn = left.get(workId);
    if (turn === undefined || !kept.delete(workId)) return;
    lanes.unkeep(turn.target.ref);
    freed(turn.target.ref);
  }

  function release(workId: string): void {
    left.get(workId)?.leave();
    free(workId);
    left.delete(workId);
  }

  return {
    keep(turn) {
      release(turn.workId);
      left.set(turn.workId, { ...turn, leave: entered(turn.target) });
      kept.add(turn.workId);
      lanes.keep(turn.target.ref);
    },
    has: (workId) => kept.has(workId),
    all: () => [...left.values()],
    free,
    release,
    claimEnded({ id, fence }, waitsForAgent) {
      // The end of a claim may come after the next one has left its turn.
      if (!waitsForAgent && (left.get(id)?.fence ?? fence) < fence) release(id);
    },
  };
}
