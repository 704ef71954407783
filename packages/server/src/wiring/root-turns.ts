import type { WorkWaiting } from '@gatehouse/contract';
import type { Approvals } from '../features/access/approvals/approvals.ts';
import type { AutonomyDeps } from '../features/delegation/autonomy/autonomy.ts';
import type { BackgroundApi } from '../features/environment/background/api.ts';
import type { Shell } from '../features/environment/shell/shell.ts';
import type { KeptLanes } from '../features/conversations/turns/lanes/kept-lanes.ts';
import type { Turns } from '../features/conversations/turns/turns.ts';

export interface RootTurnsDeps {
  readonly turns: Pick<Turns, 'rootTurns' | 'rootTurn'>;
  readonly background: Pick<BackgroundApi, 'rootTurn'>;
  readonly commands: Pick<Shell['background'], 'running'>;
  readonly approvals: Pick<Approvals, 'left'>;
  readonly keptLanes: Pick<KeptLanes, 'all'>;
}
export type RootTurns = ReturnType<typeof createRootTurns>;

/** Finds the turns at the root of running work, whatever is left of them: the turn, its wait for an approval, or what it started. */
export function createRootTurns({ turns, background, commands, approvals, keptLanes }: RootTurnsDeps) {
  /** Includes turns whose agent was suspended meanwhile. */
  const waiting = () =>
    keptLanes
      .all()
      .flatMap(({ rootRunId, runId, origin, startedAtMs, target: { ref: conversationRef, agentId, principalId } }) =>
        rootRunId === null || runId !== null ? [] : [{ rootRunId, origin, startedAtMs, conversationRef, agentId, principalId }],
      );
  return {
    /** Returns the running and the waiting turns. */
    all(): ReturnType<AutonomyDeps['turns']> {
      const running = turns.rootTurns();
      return [...running, ...waiting().filter(({ rootRunId }) => !running.some((turn) => turn.rootRunId === rootRunId))];
    },
    /** Returns the turn behind a root, also when only background work is left of it. */
    find(rootRunId: string): ReturnType<AutonomyDeps['turnOf']> {
      return (
        turns.rootTurn(rootRunId) ??
        waiting().find((turn) => turn.rootRunId === rootRunId) ??
        commands.running().find((command) => command.rootRunId === rootRunId) ??
        background.rootTurn(rootRunId)
      );
    },
    /** Returns the oldest wait for an approval. */
    waitingOf(rootRunId: string): WorkWaiting | undefined {
      const first = approvals.left().find((run) => run.rootRunId === rootRunId);
      return first && { kind: 'approval', approvalId: first.approvalId, sinceMs: first.sinceMs, untilMs: first.untilMs };
    },
  };
}
