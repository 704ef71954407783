import type { Params } from '@gatehouse/contract';
import { AppError } from '../../../../../kernel/app-error.ts';
import { type CallContext, ownerOf } from '../../../../../kernel/call-context.ts';
import type { EndpointsApi } from '../../../../channels/delivery/api.ts';
import type { SessionsApi } from '../../../../conversations/sessions/api.ts';
import type { GraphSpec } from '../../definition/definition.ts';
import { invalid } from '../../definition/input.ts';
import type { Announce } from '../../rows.ts';

/** Returns where the end of the graph is announced, and where its approval gates ask. */
export async function announceOf(
  { sessions, endpoints }: { readonly sessions: Pick<SessionsApi, 'existing'>; readonly endpoints: Pick<EndpointsApi, 'named'> },
  params: Params<'graph.execute'>,
  { nodes, agentId }: Pick<GraphSpec, 'nodes'> & { readonly agentId: string },
  call: CallContext,
): Promise<Announce> {
  const { announceChannelType: type, announceChannelId: channelId } = params;
  const caller = call.agentCaller;
  if (caller !== undefined) {
    if (type !== undefined || channelId !== undefined)
      throw invalid([{ path: 'announceChannelType', message: 'agents are notified in their own conversation and must not name a channel' }]);
    // Nobody reads the conversation of a sub-agent.
    const endpoint = caller.turn?.endpoint;
    if (caller.turn?.run !== undefined) return endpoint === undefined ? { to: 'inbox' } : { to: 'chat', endpoint };
    return { to: 'conversation', conversationRef: caller.conversationRef, agentId, ...(endpoint !== undefined && { endpoint }) };
  }
  const isAsking = nodes.some(({ work }) => work?.type === 'approval-gate');
  if (type === undefined && channelId === undefined && !isAsking) return { to: 'inbox' };
  if (type === undefined || channelId === undefined) {
    const missing = type === undefined ? 'announceChannelType' : 'announceChannelId';
    const why = isAsking ? 'required for a graph with approval gates' : 'required together with the other';
    throw invalid([
      {
        path: missing,
        message: `${why}: announceChannelType "gateway", and announceChannelId "inbox" or the reference of a conversation; or the type of a channel, and a chat of it`,
      },
    ]);
  }
  if (type !== 'gateway') return { to: 'chat', endpoint: await endpoints.named(type, channelId, call, 'announceChannel') };
  if (channelId === 'inbox') return { to: 'inbox' };
  const target = await sessions.existing({ conversationRef: channelId }, call);
  if (target.principalId !== ownerOf(call)) throw new AppError('not_found', 'Conversation not found', { param: 'announceChannelId' });
  return { to: 'conversation', conversationRef: target.ref, agentId: target.agentId };
}
