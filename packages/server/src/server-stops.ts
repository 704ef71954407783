import type { Autonomy } from './features/autonomy/autonomy.ts';
import type { BackgroundApi } from './features/background/api.ts';
import type { Shell } from './features/shell/shell.ts';
import type { StoppedRun } from './features/subagents/api.ts';
import type { TokensApi } from './features/tokens/api.ts';
import type { Turns } from './features/turns/turns.ts';
import { AppError } from './kernel/app-error.ts';

export interface StopsDeps {
  readonly tokens: TokensApi;
  readonly autonomy: Pick<Autonomy, 'api' | 'stopToken'>;
  readonly turns: Pick<Turns, 'abortRoot' | 'stop'>;
  readonly background: BackgroundApi;
  readonly commands: Shell['background'];
}

/**
 * Carries each stop to whatever runs: turns that wait or run, tool calls and commands in the background. It is called after the stop
 * itself is committed, so that nothing new begins meanwhile.
 */
export function createStops({ tokens, autonomy, turns, background, commands }: StopsDeps) {
  tokens.onRevoked((tokenId) => {
    // Rotated, it is the same one with another secret.
    if (tokens.current(tokenId) !== undefined) return;
    const roots = turns.stop({ tokenId }, new AppError('unauthenticated', 'The token was revoked or has expired'));
    commands.end({ tokenId });
    background.dropToken(tokenId);
    void autonomy.stopToken(`token:${tokenId}`, roots);
  });
  autonomy.api.onStop((rootRunId, how) => {
    if (how === 'kill') turns.abortRoot(rootRunId, new AppError('cancelled', 'The run was killed'));
    return background.dropRoot(rootRunId) + commands.end({ rootRunId });
  });
  autonomy.api.onRevoked((leaseIds) => {
    for (const leaseId of leaseIds) commands.end({ leaseId });
  });

  return {
    agentSuspended(agentId: string): void {
      turns.stop({ agentId }, new AppError('precondition_failed', `Agent is suspended: ${agentId}`));
      commands.end({ agentId });
      background.stopAgent(agentId);
    },
    agentRemoved(agentId: string): void {
      turns.stop({ agentId }, new AppError('not_found', `Agent not found: ${agentId}`));
      commands.forgetAgent(agentId);
      background.forgetAgent(agentId);
    },
    conversationDeleted(conversationRef: string): void {
      turns.stop({ conversationRef }, new AppError('cancelled', 'The conversation was deleted'));
      commands.end({ conversationRef });
      background.forget(conversationRef);
    },
    async runsStopped(runs: readonly StoppedRun[]): Promise<void> {
      for (const { runId } of runs) commands.end({ runId });
    },
    /** The turn behind a root of which only work in the background is left. */
    backgroundRoot(rootRunId: string) {
      return commands.running().find((command) => command.rootRunId === rootRunId) ?? background.rootTurn(rootRunId);
    },
  };
}
