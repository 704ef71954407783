import type { Lanes } from '../../../../kernel/lane.ts';
import type { ConversationTarget } from '../../sessions/api.ts';
import type { ParkedTurn } from '../durable/durable.ts';

/** Tracks parked turns and keeps their lanes, so that later messages run after the turn, in order. */
export interface KeptLanes {
  keep(turn: ParkedTurn): void;
  /** Returns whether a lane is kept for this work. */
  has(workId: string): boolean;
  /** Returns whether the turn of this work is parked. */
  knows(workId: string): boolean;
  /** Frees the lane of a turn that is back in it, or that returns only when its agent is resumed; the turn still counts as parked. */
  free(workId: string): void;
  /** Forgets a turn that runs again or was stopped. */
  release(workId: string): void;
  /** Returns the turns that are still parked. */
  all(): readonly ParkedTurn[];
  /** Call when a claim of the work has ended: releases a turn parked by an earlier claim, unless the item waits for its agent. */
  claimEnded(work: { readonly id: string; readonly fence: number }, waitsForAgent: boolean): void;
}

export function createKeptLanes(
  lanes: Pick<Lanes, 'keep' | 'unkeep'>,
  /** Called when a lane is free again, because work may be queued behind it. */
  freed: (conversationRef: string) => void,
  /** Marks the conversation as existing, even before its first turn has ended, until the returned function is called. */
  entered: (target: ConversationTarget) => () => void,
): KeptLanes {
  const parked = new Map<string, ParkedTurn & { readonly leave: () => void }>();
  /** Work ids of the turns whose lanes are kept. */
  const kept = new Set<string>();

  function free(workId: string): void {
    const turn = parked.get(workId);
    if (turn === undefined || !kept.delete(workId)) return;
    lanes.unkeep(turn.target.ref);
    freed(turn.target.ref);
  }

  function release(workId: string): void {
    parked.get(workId)?.leave();
    free(workId);
    parked.delete(workId);
  }

  return {
    keep(turn) {
      release(turn.workId);
      parked.set(turn.workId, { ...turn, leave: entered(turn.target) });
      kept.add(turn.workId);
      lanes.keep(turn.target.ref);
    },
    has: (workId) => kept.has(workId),
    knows: (workId) => parked.has(workId),
    all: () => [...parked.values()],
    free,
    release,
    claimEnded({ id, fence }, waitsForAgent) {
      // A claim may end after the next one has parked its turn.
      if (!waitsForAgent && (parked.get(id)?.fence ?? fence) < fence) release(id);
    },
  };
}
