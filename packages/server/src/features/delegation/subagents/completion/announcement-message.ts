import { hash } from 'node:crypto';
import { newId } from '../../../../kernel/ids.ts';
import type { InboxMessage } from '../../../unattended/inbox/api.ts';
import type { ConversationTarget, NewMessages } from '../../../conversations/sessions/api.ts';
import type { RunRow } from '../run/row.ts';
import { failureNote, inboxText } from './announcement-text.ts';

/** Returns the inbox message about the end of a run; `undelivered` says why its conversation was not notified. */
export function endMessage(
  row: RunRow,
  { forOwner, undelivered, atMs }: { readonly forOwner: boolean; readonly undelivered: string | undefined; readonly atMs: number },
): InboxMessage {
  const text = inboxText(row, { forOwner });
  if (undelivered === undefined || row.announceRef === null) return inboxMessage(row, row.state === 'completed' ? 'info' : 'alert', text, atMs);
  const why = `Its conversation ${row.announceRef} could not be notified: ${undelivered}. Next step: send a message there to continue.`;
  return inboxMessage(row, 'alert', `${text}\n\n${why}`, atMs);
}

/** Alerts that the conversation has the announcement, but its agent did not answer. */
export function unansweredAlert(
  row: RunRow,
  { runIds, sessionKey, why, atMs }: { readonly runIds: readonly string[]; readonly sessionKey: string; readonly why: string; readonly atMs: number },
): InboxMessage {
  const text = `The end of ${runIds.join(', ')} was announced in the conversation ${sessionKey}, and its agent did not answer after waiting for its model provider: ${why}. Next step: send a message there to continue.`;
  return inboxMessage(row, 'alert', text, atMs);
}

function inboxMessage(row: RunRow, level: InboxMessage['level'], text: string, atMs: number): InboxMessage {
  const { id, agentId, conversationRef, principalId } = row;
  const about = { source: 'subagent', agentId, conversationRef, principalId } as const;
  return { id: newId('in'), opKey: `subagent:${id}`, digest: hash('sha256', id), ...about, level, text, atMs };
}

/** Returns the note about failed runs that is added to a conversation without a model call. */
export function failureNotes(target: ConversationTarget, turnId: string, rows: readonly RunRow[], atMs: number): NewMessages {
  return {
    ref: target.ref,
    sessionKey: target.sessionKey,
    agentId: target.agentId,
    principalId: target.principalId,
    turnId,
    steps: 0,
    toolCalls: 0,
    inputTokens: 0,
    outputTokens: 0,
    costNano: 0,
    messages: [{ role: 'assistant', content: rows.map(failureNote).join('\n'), toolJson: null, attachmentsJson: null, createdAtMs: atMs }],
    atMs,
  };
}
