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

/** The list beside the chat, with a search over what this tab knows of the conversations. */
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
  const [words, setWords] = useState('');
  const list = useConversations(limit);
  const found = useMemo(() => searchConversations(list.data?.sessions ?? [], words, chats.loaded()), [list.data, words, chats]);
  useOverlay(open, onClose);

  return (
    <aside className={open ? 'picker open' : 'picker'} aria-label="Conversations">
      <div className="picker-head">
        <SearchField
          label="Search the conversations"
          title="Searches first words, keys and agents, and the messages of conversations opened in this tab"
          value={words}
          onChange={setWords}
        />
        <IconButton icon="plus" label="Begin a new chat" onClick={onBegin} />
        <span className="narrow-only">
          <IconButton icon="close" label="Hide the conversations" onClick={onClose} />
        </span>
      </div>
      {list.error !== undefined && <Failure error={list.error} onRetry={list.reload} />}
      {list.data === undefined && list.loading && <Skeleton lines={6} />}
      {list.data !== undefined && found.length === 0 && (
        <p className="hint pad">
          {words === '' ? 'No conversations yet.' : 'Nothing found in first words, keys, agents, and messages opened in this tab.'}
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
      {list.data !== undefined && words === '' && list.data.hasMore && limit < maxLimit && (
        <Button small onClick={() => setLimit(maxLimit)}>
          Show more
        </Button>
      )}
    </aside>
  );
}
