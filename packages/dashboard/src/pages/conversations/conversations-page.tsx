import { t, tx } from '../../language.ts';
import { useMemo, useState } from 'react';
import { useSession } from '../../data/context.ts';
import { type Conversation, searchConversations, useConversations } from '../../data/conversations.ts';
import { ago, count, dateTime, plural } from '../../data/format.ts';
import { useSettled } from '../../data/use-settled.ts';
import { AgentBadge } from '../../ui/agent-badge.tsx';
import { AgentFilter } from '../../ui/agent-filter.tsx';
import { Confirm } from '../../ui/dialog.tsx';
import { Icon } from '../../ui/icon.tsx';
import { PageLink } from '../../ui/link.tsx';
import { Badge, Button, Empty, Failure, IconButton, Page, Skeleton } from '../../ui/parts.tsx';
import { SearchField } from '../../ui/search-field.tsx';
import { ConversationPage } from './conversation-page.tsx';
import { exportConversation } from './export-conversation.ts';
import { FoundMessages } from './found-messages.tsx';

const firstLimit = 50;
const maxLimit = 200;

/** `/conversations` lists and searches conversations, `/conversations/<reference>[/<message>]` shows the details of one. */
export function ConversationsPage({ rest }: { readonly rest: string | undefined }) {
  const [reference, seq] = rest?.split('/') ?? [];
  if (reference === undefined) return <ConversationList />;
  return <ConversationPage key={reference} reference={reference} seq={/^[1-9]\d{0,8}$/.test(seq ?? '') ? Number(seq) : undefined} />;
}

function ConversationList() {
  const { client, admin, chats } = useSession();
  const [agentId, setAgentId] = useState<string>();
  const [source, setSource] = useState<Conversation['source']>();
  const [limit, setLimit] = useState(firstLimit);
  const [input, setInput] = useState('');
  const query = useSettled(input);
  const [removing, setRemoving] = useState<Conversation>();
  const [error, setError] = useState<unknown>();
  const list = useConversations(limit, { agentId, source });
  const found = useMemo(() => searchConversations(list.data?.sessions ?? [], input, []), [list.data, input]);

  return (
    <Page
      title={t('Conversations')}
      lead={list.data === undefined ? undefined : `${plural(list.data.total, 'conversation')} ${admin ? t('of everyone') : t('of this token')}`}
      actions={
        <Button icon="retry" onClick={list.reload} disabled={list.loading}>
          {t('Refresh')}
        </Button>
      }
    >
      <div className="toolbar">
        <SearchField label={t('Search conversations')} hint={t('Search titles and all messages')} value={input} onChange={setInput} />
        <AgentFilter value={agentId} onChange={setAgentId} />
        <SourceFilter value={source} onChange={setSource} />
      </div>
      {(list.error ?? error) !== undefined && <Failure error={list.error ?? error} onRetry={list.error === undefined ? undefined : list.reload} />}
      {list.data === undefined && list.loading && <Skeleton lines={8} />}
      {list.data !== undefined && input === '' && found.length === 0 && (
        <Empty title={t('No conversations yet')}>
          <PageLink to="/chat">{t('Start one in the chat')}</PageLink>
        </Empty>
      )}
      {found.length > 0 && (
        <ul className="rows" aria-label={t('Conversations')}>
          {found.map((one) => (
            <ConversationRow
              key={one.conversationRef}
              conversation={one}
              onExport={() => exportConversation(client, one, setError)}
              onRemove={admin ? () => setRemoving(one) : undefined}
            />
          ))}
        </ul>
      )}
      {query !== '' && input !== '' && <FoundMessages query={query} agentId={agentId} />}
      {list.data !== undefined && input === '' && list.data.hasMore && (
        <p className="pad">
          {limit < maxLimit ? (
            <Button onClick={() => setLimit(maxLimit)}>{t('Show more')}</Button>
          ) : (
            <span className="hint">{tx('Showing the newest {maxLimit}. The search covers all messages.', { maxLimit })}</span>
          )}
        </p>
      )}
      {removing !== undefined && (
        <Confirm
          title={t('Delete this conversation?')}
          action={t('Delete')}
          onClose={() => setRemoving(undefined)}
          run={async () => {
            await client.call('session.delete', { conversationRef: removing.conversationRef });
            chats.forget(removing.conversationRef);
            list.reload();
          }}
        >
          <p>
            {tx(
              "{name} with its {messages} and their summaries is removed from the list. An archived copy stays in the gateway's database; memories are kept.",
              { name: <strong>{removing.title ?? removing.sessionKey}</strong>, messages: plural(removing.messageCount, 'message') },
            )}
          </p>
        </Confirm>
      )}
    </Page>
  );
}

const sourceLabels: Readonly<Record<Conversation['source'], string>> = {
  chat: t('Chats'),
  job: t('Jobs'),
  'sub-agent': 'Sub-agents',
  webhook: t('Webhooks'),
  heartbeat: t('Heartbeats'),
  evaluation: t('Evaluations'),
};
const sources = Object.keys(sourceLabels) as readonly Conversation['source'][];

function SourceFilter({
  value,
  onChange,
}: {
  readonly value: Conversation['source'] | undefined;
  readonly onChange: (source: Conversation['source'] | undefined) => void;
}) {
  return (
    <select aria-label={t('Started by')} value={value ?? ''} onChange={(event) => onChange(sources.find((source) => source === event.target.value))}>
      <option value="">{t('Started by anything')}</option>
      {sources.map((source) => (
        <option key={source} value={source}>
          {sourceLabels[source]}
        </option>
      ))}
    </select>
  );
}

function ConversationRow({
  conversation,
  onExport,
  onRemove,
}: {
  readonly conversation: Conversation;
  readonly onExport: () => void;
  readonly onRemove: (() => void) | undefined;
}) {
  const { conversationRef, sessionKey, title = sessionKey, source, shelf, agentId, messageCount, totalTokens, updatedAt } = conversation;
  return (
    <li className="row">
      <div className="row-main">
        <PageLink to={`/chat/${conversationRef}`} className="row-title" dir="auto">
          {title}
        </PageLink>
        <p className="hint mono cut">{sessionKey}</p>
      </div>
      <div className="row-facts">
        {source !== 'chat' && <Badge tone="accent">{sourceLabels[source]}</Badge>}
        {shelf !== undefined && <Badge>{shelf === 'pinned' ? t('Pinned') : t('Archived')}</Badge>}
        <AgentBadge agentId={agentId} />
        <span>{plural(messageCount, 'message')}</span>
        <span>{tx('{totalTokens} tokens', { totalTokens: count(totalTokens) })}</span>
        <time dateTime={new Date(updatedAt).toISOString()} title={dateTime(updatedAt)}>
          {ago(updatedAt)}
        </time>
      </div>
      <div className="row-actions">
        <PageLink to={`/conversations/${conversationRef}`} className="icon-button" label={t('Details of {sessionKey}', { sessionKey })}>
          <Icon name="info" />
        </PageLink>
        <IconButton icon="download" label={t('Export {title}', { title })} onClick={onExport} />
        {onRemove !== undefined && <IconButton icon="trash" label={t('Delete {title}', { title })} onClick={onRemove} />}
      </div>
    </li>
  );
}
