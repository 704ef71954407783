import type { Params } from '@gatehouse/contract';
import { AppError } from '../../../../../kernel/app-error.ts';
import type { AgentCaller, CallContext } from '../../../../../kernel/call-context.ts';
import type { EndpointsApi } from '../../../../channels/delivery/api.ts';
import type { SessionsApi } from '../../../../conversations/sessions/api.ts';
import type { RunSpec } from '../plan-run.ts';

export interface AnnounceToDeps {
  readonly sessions: Pick<SessionsApi, 'existing'>;
  readonly endpoints: Pick<EndpointsApi, 'named'>;
}

const toInbox: RunSpec['announce'] = { to: 'inbox', target: null, runId: null };

/** Returns where the end of the requested run is announced. */
export async function announcementOf(
  { sessions, endpoints }: AnnounceToDeps,
  params: Params<'session.spawn'>,
  call: CallContext,
): Promise<RunSpec['announce']> {
  const { announceChannelType: type, announceChannelId: id } = params;
  const { agentCaller } = call;
  if (agentCaller !== undefined) {
    if (type !== undefined || id !== undefined)
      throw new AppError('denied', 'announceChannelType, announceChannelId: runs of an agent are announced in its own conversation', {
        param: 'announceChannelType',
      });
    return announceToCaller(agentCaller);
  }
  if (type === undefined && id === undefined) return toInbox;
  if (type === undefined || id === undefined)
    throw new AppError('invalid_params', 'announceChannelType, announceChannelId: expected both or neither', {
      param: type === undefined ? 'announceChannelType' : 'announceChannelId',
    });
  if (type !== 'gateway') return { ...toInbox, endpoint: await endpoints.named(type, id, call, 'announceChannel') };
  if (id === 'inbox') return toInbox;
  const target = await sessions.existing({ conversationRef: id }, call);
  // Admins can see the conversations of others, but must not announce into them.
  if (target.principalId !== call.identity.principalId) throw new AppError('not_found', 'Conversation not found');
  return { to: 'conversation', target, runId: null };
}

/** Returns where to announce an agent-requested run. A requester that is a sub-agent may poll; otherwise its requester is notified. */
function announceToCaller({ agentId, principalId, conversationRef: ref, turn }: AgentCaller): RunSpec['announce'] {
  const endpoint = turn?.endpoint;
  if (turn?.run !== undefined) return { to: 'run', target: null, runId: turn.run.runId, endpoint };
  // Only tests make callers without a turn.
  return turn === undefined
    ? toInbox
    : { to: 'conversation', target: { ref, sessionKey: turn.sessionKey, agentId, principalId }, runId: null, endpoint };
}
