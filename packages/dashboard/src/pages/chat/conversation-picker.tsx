import { useMemo, useRef, useState } from 'react';
import { useSession } from '../../data/context.ts';
import { searchConversations, useConversations } from '../../data/conversations.ts';
import { ago, plural } from '../../data/format.ts';
import { useStore } from '../../data/store.ts';
import { useVisibleTitles } from '../../data/use-visible-titles.ts';
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
  const { titles: known, chats } = useSession();
  const titles = useStore(known.titles);
  const rows = useRef<HTMLUListElement>(null);
  const [limit, setLimit] = useState(firstLimit);
  const [words, setWords] = useState('');
  const list = useConversations(limit);
  const found = useMemo(
    () => searchConversations(list.data?.conversations ?? [], words, { titles, threads: chats.loaded() }),
    [list.data, words, titles, chats],
  );
  useVisibleTitles(rows, found.map(({ conversationRef }) => conversationRef).join(' '));

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
      <ul className="picker-list" ref={rows}>
        {found.map(({ conversationRef, sessionKey, agentId, updatedAt }) => (
          <li key={conversationRef} data-conversation={conversationRef}>
            <PageLink to={`/chat/${conversationRef}`} className="picker-item" current={conversationRef === current} onFollow={onPick}>
              <span className="picker-title" dir="auto">
                {titles.get(conversationRef) ?? sessionKey}
              </span>
              <span className="hint">
                {agentId} · {ago(updatedAt)}
              </span>
            </PageLink>
          </li>
        ))}
      </ul>
      {list.data !== undefined && list.data.agentsLeftOut > 0 && (
        <p className="hint pad">{plural(list.data.agentsLeftOut, 'further agent')} not listed here.</p>
      )}
      {list.data !== undefined && words === '' && list.data.total > list.data.conversations.length && limit < maxLimit && (
        <Button small onClick={() => setLimit(maxLimit)}>
          Show more
        </Button>
      )}
    </aside>
  );
}
