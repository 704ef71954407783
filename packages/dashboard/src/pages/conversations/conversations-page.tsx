import { useMemo, useRef, useState } from 'react';
import { useSession } from '../../data/context.ts';
import { type Conversation, searchConversations, useConversations } from '../../data/conversations.ts';
import { ago, count, dateTime, plural } from '../../data/format.ts';
import { useStore } from '../../data/store.ts';
import { useVisibleTitles } from '../../data/use-visible-titles.ts';
import { Confirm } from '../../ui/dialog.tsx';
import { saveJson } from '../../ui/save-json.ts';
import { PageLink } from '../../ui/link.tsx';
import { Badge, Button, Empty, Failure, IconButton, Page, Skeleton } from '../../ui/parts.tsx';
import { SearchField } from '../../ui/search-field.tsx';

const firstLimit = 50;
const maxLimit = 200;

export function ConversationsPage() {
  const { client, admin, titles: known, chats, agents } = useSession();
  const agentIds = useStore(agents);
  const [agentId, setAgentId] = useState<string>();
  const titles = useStore(known.titles);
  const rows = useRef<HTMLUListElement>(null);
  const [limit, setLimit] = useState(firstLimit);
  const [words, setWords] = useState('');
  const [removing, setRemoving] = useState<Conversation>();
  const [error, setError] = useState<unknown>();
  const list = useConversations(limit, agentId);
  const found = useMemo(
    () => searchConversations(list.data?.conversations ?? [], words, { titles, threads: chats.loaded() }),
    [list.data, words, titles, chats],
  );
  useVisibleTitles(rows, found.map(({ conversationRef }) => conversationRef).join(' '));

  const exportOne = ({ conversationRef }: Conversation): void => {
    setError(undefined);
    client.call('session.export', { conversationRef }).then(
      (whole) => saveJson(`conversation-${conversationRef.slice(3, 15)}.json`, whole),
      (failure: unknown) => setError(failure),
    );
  };

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
        <SearchField label="Search the conversations" value={words} onChange={setWords} />
        {agentIds.length > 1 && (
          <select aria-label="Agent" value={agentId ?? ''} onChange={({ target: { value } }) => setAgentId(value === '' ? undefined : value)}>
            <option value="">All agents</option>
            {agentIds.map((id) => (
              <option key={id}>{id}</option>
            ))}
          </select>
        )}
        <p className="hint">Searches first words, keys and agents, and the messages of conversations opened in this tab.</p>
      </div>
      {(list.error ?? error) !== undefined && <Failure error={list.error ?? error} onRetry={list.error === undefined ? undefined : list.reload} />}
      {list.data === undefined && list.loading && <Skeleton lines={8} />}
      {list.data !== undefined && found.length === 0 && (
        <Empty title={words === '' ? 'No conversations yet' : 'Nothing found'}>
          {words === '' ? <PageLink to="/chat">Begin one in the chat</PageLink> : <p>Other words may be in messages that this tab has not opened.</p>}
        </Empty>
      )}
      {found.length > 0 && (
        <ul className="rows" ref={rows}>
          {found.map((one) => (
            <li key={one.conversationRef} className="row" data-conversation={one.conversationRef}>
              <div className="row-main">
                <PageLink to={`/chat/${one.conversationRef}`} className="row-title" dir="auto">
                  {titles.get(one.conversationRef) ?? one.sessionKey}
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
                <IconButton icon="download" label={`Export ${one.sessionKey}`} onClick={() => exportOne(one)} />
                {admin && <IconButton icon="trash" label={`Delete ${one.sessionKey}`} onClick={() => setRemoving(one)} />}
              </div>
            </li>
          ))}
        </ul>
      )}
      {list.data !== undefined && words === '' && list.data.total > list.data.conversations.length && (
        <p className="pad">
          {limit < maxLimit ? (
            <Button onClick={() => setLimit(maxLimit)}>Show more</Button>
          ) : (
            <span className="hint">The newest {maxLimit} of each agent are shown.</span>
          )}
        </p>
      )}
      {list.data !== undefined && list.data.agentsLeftOut > 0 && (
        <p className="hint">{plural(list.data.agentsLeftOut, 'further agent')} not listed; choose one above to see its conversations.</p>
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
            <strong>{titles.get(removing.conversationRef) ?? removing.sessionKey}</strong> with its {plural(removing.messageCount, 'message')} leaves
            the list. An archived copy stays in the database of the gateway.
          </p>
        </Confirm>
      )}
    </Page>
  );
}
