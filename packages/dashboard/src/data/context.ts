import { createContext, use } from 'react';
import type { AgentNames } from './agent-names.ts';
import type { Approvals } from './approvals.ts';
import type { ChatStore } from './chats.ts';
import type { Connection } from './connect.ts';
import type { HealthWatch } from './health.ts';
import type { Inbox } from './inbox.ts';
import type { LiveEvents } from './live.ts';
import type { CallHistory } from './past-calls.ts';
import type { Queries } from './queries.ts';
import type { Store } from './store.ts';
import type { ToolActivities } from './tool-activity.ts';
import type { TurnCosts } from './turn-costs.ts';
import type { TurnIds } from './turn-ids.ts';
import type { WaitingForUser } from './waiting.ts';

/** State that all pages share while a user is logged in. */
export interface Session extends Connection {
  readonly live: LiveEvents;
  readonly health: HealthWatch;
  /** What pages have loaded. */
  readonly queries: Queries;
  /** Ids of the agents that the token may use, kept up to date. */
  readonly agents: Store<readonly string[]>;
  /** What agents are shown as. */
  readonly agentNames: Store<AgentNames>;
  readonly chats: ChatStore;
  /** Costs of the turns that this tab knows about. */
  readonly turnCosts: Store<TurnCosts>;
  /** The newest turn of each conversation that this tab has heard of. */
  readonly turnIds: Store<TurnIds>;
  readonly approvals: Approvals;
  /** What waits for the user apart from approvals. */
  readonly waiting: WaitingForUser;
  readonly inbox: Inbox;
  readonly toolActivities: Store<ToolActivities>;
  readonly pastCalls: CallHistory;
  readonly logOut: () => void;
}

export const SessionContext = createContext<Session | undefined>(undefined);

export function useSession(): Session {
  const session = use(SessionContext);
  if (session === undefined) throw new Error('useSession must be called inside a session.');
  return session;
}
