import { navigate } from '../router.ts';
import { createAgentNames } from './agent-names.ts';
import { createApprovals } from './approvals.ts';
import { ChatStore } from './chats.ts';
import { type Connection, listAgents } from './connect.ts';
import type { Session } from './context.ts';
import { isAuthenticationError } from './errors.ts';
import { watchHealth } from './health.ts';
import { createInbox } from './inbox.ts';
import { openLive } from './live.ts';
import { createCallHistory } from './past-calls.ts';
import { createQueries } from './queries.ts';
import { createStore } from './store.ts';
import { createToolActivities } from './tool-activity.ts';
import { createTurnCosts, readNewestCalls } from './turn-costs.ts';
import { createTurnIds } from './turn-ids.ts';
import { createWaiting } from './waiting.ts';

/** Opens what all pages share while a user is logged in. `leave` logs out, with the reason when the token is refused. */
export function createSession(connection: Connection, leave: (error?: unknown) => void): Session {
  // Revoking a token closes its stream, and with it the session of this tab.
  const live = openLive(connection.client, (error) => {
    if (isAuthenticationError(error)) leave(error);
  });
  const agents = createStore(connection.agentIds);
  live.listen(({ kind }) => {
    // The server decides which agents the token may use; on failure the list stays as it was.
    if (kind === 'agent:hot_added' || kind === 'agent:hot_removed') listAgents(connection).then(agents.set, () => undefined);
  });
  return {
    ...connection,
    live,
    health: watchHealth(connection.client, live),
    queries: createQueries(live, connection.quota),
    agents,
    agentNames: createAgentNames(connection.client, live),
    chats: new ChatStore(connection.client, live, connection.defaultAgentId),
    turnCosts: createTurnCosts(live, () => readNewestCalls(connection.client)),
    turnIds: createTurnIds(live),
    approvals: createApprovals(connection.client, live, connection.admin),
    waiting: createWaiting(connection.client, live, connection.admin, connection.quota),
    inbox: createInbox(connection.client, live),
    toolActivities: createToolActivities(live),
    pastCalls: createCallHistory(),
    logOut: () => {
      leave();
      // The address may name a conversation; the next user must not see it.
      navigate('/', { replace: true });
    },
  };
}

/** Closes everything that a session has open. */
export function closeSession({ live, health, chats, approvals, waiting, inbox, pastCalls, queries }: Session): void {
  for (const part of [live, health, chats, approvals, waiting, inbox, pastCalls, queries]) part.close();
}
