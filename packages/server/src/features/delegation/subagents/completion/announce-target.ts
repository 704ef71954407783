import { once } from '@gatehouse/contract';
import * as z from 'zod';
import type { ChatEndpoint } from '../../../../kernel/call-context.ts';
import { StoredChatEndpoint } from '../../../../kernel/chat-endpoint.ts';
import { parseJson } from '../../../../kernel/json.ts';
import type { ConversationTarget } from '../../../conversations/sessions/api.ts';
import type { RunRow } from '../run/row.ts';

const Stored = once(() =>
  z.strictObject({
    ref: z.string().optional(),
    sessionKey: z.string().optional(),
    agentId: z.string().optional(),
    principalId: z.string().optional(),
    endpoint: StoredChatEndpoint().optional(),
  }),
);

/** Target of the announcement of a run: in a conversation, in a chat, or, for a conversation that a chat belongs to, in both. */
export interface AnnounceTarget {
  readonly conversation: ConversationTarget | undefined;
  readonly endpoint: ChatEndpoint | undefined;
}

/** Returns the stored form of a target; null for the inbox alone. */
export const toTargetJson = (conversation: ConversationTarget | null, endpoint: ChatEndpoint | undefined): string | null =>
  conversation === null && endpoint === undefined ? null : JSON.stringify({ ...conversation, ...(endpoint !== undefined && { endpoint }) });

/** Returns the target of a run. */
export function readTarget({ announceTargetJson: json }: Pick<RunRow, 'announceTargetJson'>): AnnounceTarget {
  const { ref, sessionKey, agentId, principalId, endpoint }: z.output<ReturnType<typeof Stored>> =
    json === null ? {} : Stored().parse(parseJson(json));
  const isWhole = ref !== undefined && sessionKey !== undefined && agentId !== undefined && principalId !== undefined;
  return { conversation: isWhole ? { ref, sessionKey, agentId, principalId } : undefined, endpoint };
}
