import type { Lanes } from '../../kernel/lane.ts';
import type { ConversationTarget } from '../sessions/api.ts';
import type { LeftInLane } from './durable.ts';

/** Keeps the lanes of turns that wait for a person: messages that come meanwhile run after the turn, in their order. */
export interface KeptLanes {
  keep(turn: LeftInLane): void;
  /** Whether a lane is kept for this work. */
  has(workId: string): boolean;
  /** The turn is back in its lane, or was stopped. */
  release(workId: string): void;
  /** The turns for which lanes are kept. */
  all(): readonly LeftInLane[];
  /** A claim of the work ended: what was left by an earlier one has no turn to come back for any more. */
  claimEnded(work: { readonly id: string; readonly fence: number }): void;
}

export function createKeptLanes(
  lanes: Pick<Lanes, 'keep' | 'unkeep'>,
  /** A lane is free again: work may wait behind it. */
  freed: (conversationRef: string) => void,
  /** The conversation exists, also before its first turn has ended, until what this returns is called. */
  entered: (target: ConversationTarget) => () => void,
): KeptLanes {
  const kept = new Map<string, LeftInLane & { readonly leave: () => void }>();

  function release(workId: string): void {
    const turn = kept.get(workId);
    if (turn === undefined) return;
    kept.delete(workId);
    turn.leave();
    lanes.unkeep(turn.target.ref);
    freed(turn.target.ref);
  }

  return {
    keep(turn) {
      release(turn.workId);
      kept.set(turn.workId, { ...turn, leave: entered(turn.target) });
      lanes.keep(turn.target.ref);
    },
    has: (workId) => kept.has(workId),
    all: () => [...kept.values()],
    release,
    claimEnded({ id, fence }) {
      if ((kept.get(id)?.fence ?? fence) !== fence) release(id);
    },
  };
}
