import type { ConversationScope, ResultInput, StoredMessage } from '@gatehouse/contract';
import { unfenced } from '../../../../runtime/cut-fenced.ts';
import { decodeAttachments, decodeReasoning, decodeToolColumn } from '../../../../runtime/stored-message.ts';
import type { MessageRow } from '../api.ts';
import { tenantId } from '../conversation.ts';
import type { ConversationRow } from '../store.ts';
import { decodeTags } from './tags.ts';

/** Converts stored money in 1e-9 dollars to dollars. */
export const dollars = (nano: number) => nano / 1e9;

export const identityOf = (row: Pick<ConversationRow, 'ref' | 'sessionKey' | 'agentId'>) => ({
  conversationRef: row.ref,
  sessionKey: row.sessionKey,
  agentId: row.agentId,
});

const scopeOf = ({ agentId, principalId, sessionKey }: ConversationRow): ConversationScope => ({
  tenantId,
  agentId,
  partition: { kind: 'principal-key', principalId, sessionKey },
});

const titleOf = ({ name, title }: ConversationRow): string | undefined => name ?? title ?? undefined;

export function toSummary(row: ConversationRow): ResultInput<'session.list'>['sessions'][number] {
  return {
    ...identityOf(row),
    conversationScope: scopeOf(row),
    kind: row.kind,
    ...(titleOf(row) !== undefined && { title: titleOf(row) }),
    ...(row.name !== null && { named: true as const }),
    ...(row.shelf !== 'list' && { shelf: row.shelf }),
    ...(row.tags !== '' && { tags: decodeTags(row.tags) }),
    source: row.source,
    ...(row.forkedFrom !== null && { forkedFrom: row.forkedFrom }),
    ...(row.synthetic === 1 && { synthetic: true as const }),
    messageCount: row.messageCount,
    totalTokens: row.inputTokens + row.outputTokens,
    createdAt: row.createdAtMs,
    updatedAt: row.updatedAtMs,
  };
}

/** Returns the content of a message; announcements in the agent's name lose the marker lines meant for models. */
export const shownContent = ({ role, content }: Pick<MessageRow, 'role' | 'content'>): string => (role === 'assistant' ? unfenced(content) : content);

export function toStoredMessage(row: MessageRow): StoredMessage {
  const { toolCalls, toolCallId, toolName } = decodeToolColumn(row.toolJson);
  return {
    seq: row.seq,
    turnId: row.turnId,
    role: row.role,
    content: shownContent(row),
    ...(toolCalls !== undefined && { toolCalls: [...toolCalls] }),
    ...(toolCallId !== undefined && { toolCallId }),
    ...(toolName !== undefined && { toolName }),
    ...(row.attachmentsJson !== null && { attachments: [...decodeAttachments(row.attachmentsJson)] }),
    ...(row.reasoningJson != null && { reasoning: toReasoning(row.reasoningJson) }),
    timestamp: row.createdAtMs,
  };
}

function toReasoning(json: string): StoredMessage['reasoning'] {
  const { text, durationMs, isCut } = decodeReasoning(json);
  return { text, durationMs, ...(isCut === true && { cut: true }) };
}
