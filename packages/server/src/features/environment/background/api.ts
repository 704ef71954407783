import type { TurnOrigin } from '@gatehouse/contract';
import type { BackgroundTasks, TakenResults } from '../../../runtime/background.ts';

export interface BackgroundApi extends BackgroundTasks, TakenResults {
  /** Stops the tasks of a conversation that was reset or deleted and drops their results. */
  forget(conversationRef: string): void;
  /** Drops everything that a killed root turn started, without reporting it. Returns how many tasks were running. */
  dropRoot(rootRunId: string): number;
  /** Drops the tasks of a deleted agent. */
  forgetAgent(agentId: string): void;
  /** Stops the calls of a suspended agent; their conversations are notified once it is resumed. */
  stopAgent(agentId: string): void;
  /** Stops the calls of a revoked token; nobody is notified. */
  dropToken(tokenId: string): void;
  /** Returns the turn that started a call of this root, while the call runs. */
  rootTurn(
    rootRunId: string,
  ): { readonly agentId: string; readonly principalId: string; readonly conversationRef: string; readonly origin: TurnOrigin } | undefined;
}
