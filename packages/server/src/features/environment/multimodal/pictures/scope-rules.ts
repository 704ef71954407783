import type { CallContext } from '../../../../kernel/call-context.ts';
import type { ScopeRule } from '../config.ts';

/** Whether images may be described for this caller: the first rule that matches decides. A call without a chat matches no rule about chats. */
export function isVisionAllowed(rules: readonly ScopeRule[], { agentCaller }: Pick<CallContext, 'agentCaller'>): boolean {
  const turn = agentCaller?.turn;
  const endpoint = turn?.endpoint;
  const rule = rules.find(
    ({ channel, chatType, keyPrefix }) =>
      (channel === undefined || channel === endpoint?.channelType || channel === endpoint?.instance) &&
      (chatType === undefined || chatType === endpoint?.conversationKind) &&
      (keyPrefix === undefined || turn?.sessionKey.startsWith(keyPrefix) === true),
  );
  return rule?.action !== 'deny';
}
