import { AppError } from '../../../kernel/app-error.ts';
import type { CallContext } from '../../../kernel/call-context.ts';
import type { ConversationAddress, SessionsApi } from '../../conversations/sessions/api.ts';
import { isSubAgentKey } from './exchange.ts';
import type { SendTarget } from './session-send.ts';

export interface TargetDeps {
  readonly sessions: Pick<SessionsApi, 'existing'>;
  /** Finds the sub-agent in this conversation that the other one requested. */
  readonly childOf: (about: { readonly requesterRef: string; readonly conversationRef: string }) => Promise<SendTarget | undefined>;
}

/** Finds conversations that a caller may send to. An agent reaches its sub-agents only from the conversation that requested them. */
export function createFindTarget({ sessions, childOf }: TargetDeps): (address: ConversationAddress, call: CallContext) => Promise<SendTarget> {
  return async (address, call) => {
    const { agentCaller } = call;
    if (agentCaller === undefined) return sessions.existing(address, call);
    const { conversationRef } = address;
    const child = conversationRef === undefined ? undefined : await childOf({ requesterRef: agentCaller.conversationRef, conversationRef });
    if (child !== undefined) return child;
    const target = await sessions.existing(address, call);
    // Foreign and unknown conversations get the same answer.
    if (isSubAgentKey(target.sessionKey) && target.ref !== agentCaller.conversationRef) throw new AppError('not_found', 'Conversation not found');
    return target;
  };
}
