import { useMemo, useState } from 'react';
import { useSession } from '../../data/context.ts';
import { searchConversations, useConversations } from '../../data/conversations.ts';
import { ago } from '../../data/format.ts';
import { PageLink } from '../../ui/link.tsx';
import { useOverlay } from '../../ui/overlay.ts';
import { Button, Failure, IconButton, Skeleton } from '../../ui/parts.tsx';
import { SearchField } from '../../ui/search-field.tsx';

const firstLimit = 30;
const maxLimit = 200;

/** The conversation list next to the chat, with a search over the data loaded in this tab. */
export function ConversationPicker({
  current,
  open,
  onBegin,
  onPick,
  onClose,
}: {
  readonly current: string | undefined;
  readonly open: boolean;
  readonly onBegin: () => void;
  readonly onPick: () => void;
  readonly onClose: () => void;
}) {
  const { chats } = useSession();
  const [limit, setLimit] = useState(firstLimit);
  const [query, setQuery] = useState('');
  const list = useConversations(limit);
  const found = useMemo(() => searchConversations(list.data?.sessions ?? [], query, chats.loaded()), [list.data, query, chats]);
  useOverlay(open, onClose);

  return (
    <aside className={open ? 'picker open' : 'picker'} aria-label="Conversations">
      <div className="picker-head">
        <SearchField
          label="Search conversations"
          title="Searches titles, keys and agents, and the messages of conversations opened in this tab"
          value={query}
          onChange={setQuery}
        />
        <IconButton icon="plus" label="Start a new chat" onClick={onBegin} />
        <span className="narrow-only">
          <IconButton icon="close" label="Hide conversations" onClick={onClose} />
        </span>
      </div>
      {list.error !== undefined && <Failure error={list.error} onRetry={list.reload} />}
      {list.data === undefined && list.loading && <Skeleton lines={6} />}
      {list.data !== undefined && found.length === 0 && (
        <p className="hint pad">
          {query === '' ? 'No conversations yet.' : 'Nothing found in titles, keys, agents, and messages opened in this tab.'}
        </p>
      )}
      <ul className="picker-list">
        {found.map(({ conversationRef, sessionKey, agentId, title, updatedAt }) => (
          <li key={conversationRef}>
            <PageLink to={`/chat/${conversationRef}`} className="picker-item" current={conversationRef === current} onFollow={onPick}>
              <span className="picker-title" dir="auto">
                {title ?? sessionKey}
              </span>
              <span className="hint">
                {agentId} · {ago(updatedAt)}
              </span>
            </PageLink>
          </li>
        ))}
      </ul>
      {list.data !== undefined && query === '' && list.data.hasMore && limit < maxLimit && (
        <Button small onClick={() => setLimit(maxLimit)}>
          Show more
        </Button>
      )}
    </aside>
  );
}
