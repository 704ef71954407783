import type { Approvals, ApprovalWaiting } from '../features/access/approvals/approvals.ts';
import type { Autonomy } from '../features/delegation/autonomy/autonomy.ts';
import type { BackgroundApi } from '../features/environment/background/api.ts';
import type { Browser } from '../features/environment/browser/browser.ts';
import type { Shell } from '../features/environment/shell/shell.ts';
import type { StoppedRun } from '../features/delegation/subagents/api.ts';
import type { TokensApi } from '../features/access/tokens/api.ts';
import type { Turns } from '../features/conversations/turns/turns.ts';
import type { ParkedTurn } from '../features/conversations/turns/durable/durable.ts';
import type { KeptLanes } from '../features/conversations/turns/lanes/kept-lanes.ts';
import type { DurableWork } from '../features/unattended/durable/api.ts';
import type { Log } from '../kernel/log.ts';
import { AppError } from '../kernel/app-error.ts';

export interface StopsDeps {
  readonly tokens: TokensApi;
  readonly autonomy: Pick<Autonomy, 'api' | 'stopToken'>;
  readonly turns: Pick<Turns, 'abortRoot' | 'stop'>;
  readonly background: BackgroundApi;
  readonly commands: Shell['background'];
  readonly browser: Pick<Browser, 'end' | 'forgetAgent'>;
  readonly approvals: Pick<Approvals, 'isWaitingIn' | 'drop' | 'clearing'>;
  readonly durable: Pick<DurableWork, 'resumeWaiting' | 'resumeAgent' | 'resumePrincipal' | 'endWaiting' | 'killWaiting'>;
  readonly keptLanes: Pick<KeptLanes, 'free' | 'release' | 'all'>;
  readonly log: Log;
}
export type Stops = ReturnType<typeof createStops>;

/**
 * Propagates each stop to everything that runs: waiting or running turns, tool calls and commands in the background. Call it after the
 * stop itself is committed, so that nothing new starts meanwhile.
 */
export function createStops({ tokens, autonomy, turns, background, commands, browser, approvals, durable, keptLanes, log }: StopsDeps) {
  /** Ends the waits for approvals that a stop covers. `ended`: the work is over as well; otherwise it continues without the call. */
  async function endWaits(isMeant: (run: ApprovalWaiting) => boolean, ended?: 'elsewhere'): Promise<number> {
    const runs = await approvals.drop(isMeant, { resume: ended === undefined });
    for (const { workId } of runs) keptLanes.release(workId);
    return runs.length;
  }

  /** Includes those whose requests are decided, and which have not resumed yet. */
  function releaseLanes(isMeant: (turn: ParkedTurn) => boolean): readonly ParkedTurn[] {
    const meant = keptLanes.all().filter(isMeant);
    for (const { workId } of meant) keptLanes.release(workId);
    return meant;
  }

  /** Ends the waiting turns at the root of a killed run; those of sub-agents are ended by their runner. */
  async function killWaiting(rootRunId: string): Promise<number> {
    const left = releaseLanes((turn) => turn.rootRunId === rootRunId);
    await endWaits((run) => run.rootRunId === rootRunId, 'elsewhere');
    const own = left.filter(({ runId }) => runId === null);
    for (const { workId: id } of own) await durable.endWaiting({ id, endedBy: 'killed' });
    return own.length + (await durable.killWaiting(rootRunId));
  }

  const unwatched = (ending: Promise<unknown>) =>
    void ending.catch((error: unknown) => log.error({ err: error }, 'Failed to end a wait during a stop; it ends at its deadline'));

  tokens.onRevoked((tokenId, owner) => {
    // A rotated token is the same one with another secret.
    if (tokens.current(tokenId) !== undefined) return;
    const roots = turns.stop({ tokenId }, new AppError('unauthenticated', 'The token was revoked or has expired'));
    commands.end({ tokenId });
    background.dropToken(tokenId);
    unwatched(endWaits((run) => run.tokenId === tokenId));
    // Work of the person's other tokens finds its own valid, and waits again.
    unwatched(durable.resumePrincipal(owner.principalId));
    void autonomy.stopToken(owner.person === undefined ? owner : { tokenId }, roots);
  });
  autonomy.api.onStop(async (rootRunId, how) => {
    if (how === 'kill') turns.abortRoot(rootRunId, new AppError('cancelled', 'The run was killed'));
    const stopped = background.dropRoot(rootRunId) + commands.end({ rootRunId });
    if (how === 'kill') return stopped + (await killWaiting(rootRunId));
    await endWaits((run) => run.rootRunId === rootRunId);
    return stopped;
  });
  autonomy.api.onRevoked((leaseIds) => {
    for (const leaseId of leaseIds) commands.end({ leaseId });
    unwatched(endWaits(({ leaseId }) => leaseId !== undefined && leaseIds.includes(leaseId)));
  });

  return {
    agentSuspended(agentId: string): void {
      turns.stop({ agentId }, new AppError('precondition_failed', `Agent is suspended: ${agentId}`));
      commands.end({ agentId });
      browser.end(agentId);
      background.stopAgent(agentId);
      for (const { workId, target } of keptLanes.all()) if (target.agentId === agentId) keptLanes.free(workId);
      unwatched(approvals.drop((run) => run.agentId === agentId));
    },
    agentRemoved(agentId: string): void {
      turns.stop({ agentId }, new AppError('not_found', `Agent not found: ${agentId}`));
      commands.forgetAgent(agentId);
      browser.forgetAgent(agentId);
      background.forgetAgent(agentId);
      unwatched(endWaits((run) => run.agentId === agentId));
      unwatched(durable.resumeAgent(agentId));
    },
    /** A person of a chat may not write any more. Running turns end on their own; none of them gets an approval. */
    personUnpaired(principalId: string): void {
      // Turns that came from a chat have the principal as their token.
      unwatched(endWaits((run) => run.tokenId === principalId));
    },
    conversationDeleted(conversationRef: string): void {
      turns.stop({ conversationRef }, new AppError('cancelled', 'The conversation was deleted'));
      commands.end({ conversationRef });
      background.forget(conversationRef);
      // Its work was dropped with the deletion.
      releaseLanes(({ target }) => target.ref === conversationRef);
      unwatched(endWaits((run) => run.conversationRef === conversationRef, 'elsewhere'));
    },
    /** Called when all messages of a conversation were removed. */
    messagesRemoved: background.forget,
    /** Until it is disposed, no turn of the conversation starts to wait for an approval. */
    async conversationCleared(conversationRef: string): Promise<Disposable> {
      const clearing = await approvals.clearing(conversationRef);
      releaseLanes(({ target }) => target.ref === conversationRef);
      return clearing;
    },
    turnEnded(turn: { readonly conversationRef: string; readonly turnId: string }): void {
      if (approvals.isWaitingIn(turn.conversationRef)) unwatched(endWaits(({ turnId }) => turnId === turn.turnId, 'elsewhere'));
    },
    conversationFreed(conversationRef: string): void {
      void durable.resumeWaiting({ kind: 'conversation', subject: conversationRef });
    },
    waitsEnded: (rootRunId: string) => endWaits((run) => run.rootRunId === rootRunId),
    approvalDecided(approvalId: string): void {
      void durable.resumeWaiting({ kind: 'approval', subject: approvalId });
    },
    async runsStopped(runs: readonly StoppedRun[]): Promise<void> {
      for (const { runId } of runs) commands.end({ runId });
      const ids = new Set(runs.map(({ runId }) => runId));
      releaseLanes(({ runId }) => runId !== null && ids.has(runId));
      await endWaits(({ runId }) => runId !== undefined && ids.has(runId), 'elsewhere');
    },
  };
}
