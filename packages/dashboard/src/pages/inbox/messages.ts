import { t } from '../../language.ts';
import type { InboxMessage } from '../../data/inbox.ts';

export const sources: Readonly<Record<InboxMessage['source'], string>> = {
  cron: t('Job'),
  heartbeat: t('Heartbeat'),
  webhook: t('Webhook'),
  turn: t('Turn'),
  subagent: 'Sub-agent',
  graph: t('Graph'),
  autonomy: t('Unattended'),
  mcp: t('MCP server'),
  channel: t('Channel'),
};

export interface InboxFilter {
  readonly unreadOnly: boolean;
  /** Empty for all. */
  readonly source: InboxMessage['source'] | '';
  readonly query: string;
}

/** Returns the messages that match; one that is open stays, although it is read by now. */
export function matching(
  messages: readonly InboxMessage[],
  { unreadOnly, source, query }: InboxFilter,
  openId: string | undefined,
): readonly InboxMessage[] {
  const terms = query.toLocaleLowerCase().split(/\s+/).filter(Boolean);
  return messages.filter((message) => {
    if (unreadOnly && message.readAt !== null && message.id !== openId) return false;
    if (source !== '' && message.source !== source) return false;
    const text = `${message.text} ${message.agentId} ${sources[message.source]}`.toLocaleLowerCase();
    return terms.every((term) => text.includes(term));
  });
}

/** Returns the first line that says something, without its marks. */
export function subjectOf({ text, source }: Pick<InboxMessage, 'text' | 'source'>): string {
  for (const line of text.split('\n')) {
    const plain = line
      .replace(/^[\s>#*+-]+|^\s*\d+[.)]\s+/g, '')
      .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .replace(/(?:\*\*|__|~~|`)/g, '')
      // The ids of what it is about are in the message.
      .replace(/ \(?[a-z]{2}_[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\)?/g, '')
      .replaceAll(/[|\\]/g, ' ')
      .trim();
    if (/[\p{L}\p{N}]/u.test(plain)) return plain;
  }
  return t('Message of a {sources}', { sources: sources[source].toLocaleLowerCase() });
}
