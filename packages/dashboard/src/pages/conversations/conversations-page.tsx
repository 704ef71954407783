import { useEffect, useMemo, useState } from 'react';
import { useSession } from '../../data/context.ts';
import { type Conversation, searchConversations, useConversations } from '../../data/conversations.ts';
import { ago, count, dateTime, plural } from '../../data/format.ts';
import { useStore } from '../../data/store.ts';
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
const settleMs = 300;

/** `/conversations` lists and searches conversations, `/conversations/<reference>[/<message>]` shows the details of one. */
export function ConversationsPage({ rest }: { readonly rest: string | undefined }) {
  const [reference, seq] = rest?.split('/') ?? [];
  if (reference === undefined) return <ConversationList />;
  return <ConversationPage key={reference} reference={reference} seq={/^[1-9]\d{0,8}$/.test(seq ?? '') ? Number(seq) : undefined} />;
}

function ConversationList() {
  const { client, admin, chats, agents } = useSession();
  const agentIds = useStore(agents);
  const [agentId, setAgentId] = useState<string>();
  const [limit, setLimit] = useState(firstLimit);
  const [input, setInput] = useState('');
  const [query, setQuery] = useState('');
  const [removing, setRemoving] = useState<Conversation>();
  const [error, setError] = useState<unknown>();
  const list = useConversations(limit, agentId);
  const found = useMemo(() => searchConversations(list.data?.sessions ?? [], input, []), [list.data, input]);
  useEffect(() => {
    const timer = setTimeout(() => setQuery(input.trim()), settleMs);
    return () => clearTimeout(timer);
  }, [input]);

  return (
    <Page
      title="Conversations"
      lead={list.data === undefined ? undefined : `${plural(list.data.total, 'conversation')} ${admin ? 'of everyone' : 'of this token'}`}
      actions={
        <Button icon="retry" onClick={list.reload} disabled={list.loading}>
          Refresh
        </Button>
      }
    >
      <div className="toolbar">
        <SearchField label="Search conversations" hint="Search titles and all messages" value={input} onChange={setInput} />
        {agentIds.length > 1 && (
          <select aria-label="Agent" value={agentId ?? ''} onChange={({ target: { value } }) => setAgentId(value === '' ? undefined : value)}>
            <option value="">All agents</option>
            {agentIds.map((id) => (
              <option key={id}>{id}</option>
            ))}
          </select>
        )}
      </div>
      {(list.error ?? error) !== undefined && <Failure error={list.error ?? error} onRetry={list.error === undefined ? undefined : list.reload} />}
      {list.data === undefined && list.loading && <Skeleton lines={8} />}
      {list.data !== undefined && input === '' && found.length === 0 && (
        <Empty title="No conversations yet">
          <PageLink to="/chat">Start one in the chat</PageLink>
        </Empty>
      )}
      {found.length > 0 && (
        <ul className="rows" aria-label="Conversations">
          {found.map((one) => (
            <li key={one.conversationRef} className="row">
              <div className="row-main">
                <PageLink to={`/chat/${one.conversationRef}`} className="row-title" dir="auto">
                  {one.title ?? one.sessionKey}
                </PageLink>
                <p className="hint mono cut">{one.sessionKey}</p>
              </div>
              <div className="row-facts">
                <Badge>{one.agentId}</Badge>
                <span>{plural(one.messageCount, 'message')}</span>
                <span>{count(one.totalTokens)} tokens</span>
                <time dateTime={new Date(one.updatedAt).toISOString()} title={dateTime(one.updatedAt)}>
                  {ago(one.updatedAt)}
                </time>
              </div>
              <div className="row-actions">
                <PageLink to={`/conversations/${one.conversationRef}`} className="icon-button" label={`Details of ${one.sessionKey}`}>
                  <Icon name="info" />
                </PageLink>
                <IconButton
                  icon="download"
                  label={`Export ${one.title ?? one.sessionKey}`}
                  onClick={() => exportConversation(client, one, setError)}
                />
                {admin && <IconButton icon="trash" label={`Delete ${one.title ?? one.sessionKey}`} onClick={() => setRemoving(one)} />}
              </div>
            </li>
          ))}
        </ul>
      )}
      {query !== '' && input !== '' && <FoundMessages query={query} agentId={agentId} />}
      {list.data !== undefined && input === '' && list.data.hasMore && (
        <p className="pad">
          {limit < maxLimit ? (
            <Button onClick={() => setLimit(maxLimit)}>Show more</Button>
          ) : (
            <span className="hint">Showing the newest {maxLimit}. The search covers all messages.</span>
          )}
        </p>
      )}
      {removing !== undefined && (
        <Confirm
          title="Delete this conversation?"
          action="Delete"
          onClose={() => setRemoving(undefined)}
          run={async () => {
            await client.call('session.delete', { conversationRef: removing.conversationRef });
            chats.forget(removing.conversationRef);
            list.reload();
          }}
        >
          <p>
            <strong>{removing.title ?? removing.sessionKey}</strong> with its {plural(removing.messageCount, 'message')} and their summaries is
            removed from the list. An archived copy stays in the gateway's database; memories are kept.
          </p>
        </Confirm>
      )}
    </Page>
  );
}
