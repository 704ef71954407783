import type { TurnOrigin } from '@gatehouse/contract';
import type { BackgroundTasks } from '../../../runtime/background.ts';

/** What becomes of tasks by a turn; see `markTasks`. */
export interface TaskMarks {
  readonly ids: readonly string[];
  readonly state: 'telling' | 'told';
}

export interface BackgroundApi extends BackgroundTasks {
  /** A turn that took results into its steps is committed. */
  told(taskIds: readonly string[]): void;
  /** What a turn took was not committed, so that it is still to be told. */
  release(taskIds: readonly string[]): void;
  /** The conversation was begun anew or deleted: its tasks are stopped, their results belong nowhere. */
  forget(conversationRef: string): void;
  /** The turn that stands at the root of a run was killed: nothing that it began goes on, and nothing of it is told. Gives how many ran. */
  dropRoot(rootRunId: string): number;
  /** The agent is gone. */
  forgetAgent(agentId: string): void;
  /** The agent was suspended: its calls are stopped, which their conversations are told once it is resumed. */
  stopAgent(agentId: string): void;
  /** The token opens nothing any more: its calls are stopped, and nobody is told. */
  dropToken(tokenId: string): void;
  /** The turn that began a call of this root, while the call runs. */
  rootTurn(
    rootRunId: string,
  ): { readonly agentId: string; readonly principalId: string; readonly conversationRef: string; readonly origin: TurnOrigin } | undefined;
}
