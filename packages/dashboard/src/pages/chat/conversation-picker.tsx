import { t } from '../../language.ts';
import { Suspense, useMemo, useState } from 'react';
import { useAgentName } from '../../data/agent-names.ts';
import { useSession } from '../../data/context.ts';
import { type Conversation, searchConversations, useChats, useConversations } from '../../data/conversations.ts';
import { ago } from '../../data/format.ts';
import { useLoad } from '../../data/use-load.ts';
import { useSettled } from '../../data/use-settled.ts';
import { ConversationDialog } from '../../lazy-pages.ts';
import { PageLink } from '../../ui/link.tsx';
import { useOverlay } from '../../ui/overlay.ts';
import { Button, Failure, IconButton, Skeleton } from '../../ui/parts.tsx';
import { SearchField } from '../../ui/search-field.tsx';

const firstLimit = 30;
const maxLimit = 200;
const maxFound = 30;

interface PickerProps {
  readonly current: string | undefined;
  readonly open: boolean;
  readonly onBegin: () => void;
  readonly onPick: () => void;
  readonly onClose: () => void;
}

/** The chats next to the open one, pinned ones first. What jobs, sub-agents and webhooks say is on the page of conversations. */
export function ConversationPicker({ current, open, onBegin, onPick, onClose }: PickerProps) {
  const [archived, setArchived] = useState(false);
  const [query, setQuery] = useState('');
  const [changed, setChanged] = useState<Conversation>();
  useOverlay(open, onClose);
  const rows = { current, onPick, onChange: setChanged };

  return (
    <aside className={open ? 'picker open' : 'picker'} aria-label={t('Conversations')}>
      <div className="picker-head">
        <SearchField label={t('Search conversations')} title={t('Searches titles and all messages')} value={query} onChange={setQuery} />
        <IconButton icon="plus" label={t('Start a new chat')} onClick={onBegin} />
        <span className="narrow-only">
          <IconButton icon="close" label={t('Hide conversations')} onClick={onClose} />
        </span>
      </div>
      {query.trim() === '' ? <ChatLists key={String(archived)} archived={archived} {...rows} /> : <FoundChats query={query} {...rows} />}
      {query.trim() === '' && (
        <div className="picker-foot">
          <Button small look="quiet" onClick={() => setArchived(!archived)}>
            {archived ? t('Back to chats') : t('Archived')}
          </Button>
        </div>
      )}
      {changed !== undefined && (
        <Suspense fallback={null}>
          <ConversationDialog conversation={changed} isOpen={changed.conversationRef === current} onClose={() => setChanged(undefined)} />
        </Suspense>
      )}
    </aside>
  );
}

interface RowsProps {
  readonly current: string | undefined;
  readonly onPick: () => void;
  readonly onChange: (conversation: Conversation) => void;
}

function ChatLists({ archived, ...rows }: RowsProps & { readonly archived: boolean }) {
  const [limit, setLimit] = useState(firstLimit);
  const [tag, setTag] = useState<string>();
  const { data, error, loading, reload } = useChats(limit, archived, tag);
  const tags = data?.tags ?? [];
  const chats = data?.list.sessions;
  const pinned = data?.pinned ?? [];
  return (
    <>
      {(tags.length > 0 || tag !== undefined) && (
        <select
          aria-label={t('Tag')}
          className="picker-tag"
          value={tag ?? ''}
          onChange={({ target: { value } }) => setTag(value === '' ? undefined : value)}
        >
          <option value="">{t('All tags')}</option>
          {[...new Set([...tags, ...(tag === undefined ? [] : [tag])])].map((one) => (
            <option key={one} value={one}>
              #{one}
            </option>
          ))}
        </select>
      )}
      {error !== undefined && <Failure error={error} onRetry={reload} />}
      {chats === undefined && loading && <Skeleton lines={6} />}
      {pinned.length > 0 && <Rows label={t('Pinned')} conversations={pinned} {...rows} />}
      {chats !== undefined && chats.length === 0 && pinned.length === 0 && (
        <p className="hint pad">{archived ? t('No archived chats.') : t('No conversations yet.')}</p>
      )}
      {chats !== undefined && chats.length > 0 && (
        <Rows label={archived ? t('Archived') : pinned.length > 0 ? t('Chats') : undefined} conversations={chats} {...rows} />
      )}
      {data?.list.hasMore === true && limit < maxLimit && (
        <Button small onClick={() => setLimit(maxLimit)}>
          {t('Show more')}
        </Button>
      )}
    </>
  );
}

function Rows({
  label,
  conversations,
  current,
  onPick,
  onChange,
}: RowsProps & { readonly label?: string | undefined; readonly conversations: readonly Conversation[] }) {
  const nameOf = useAgentName();
  return (
    <>
      {label !== undefined && <h2 className="picker-label">{label}</h2>}
      <ul className="picker-list" aria-label={label}>
        {conversations.map((one) => (
          <li key={one.conversationRef}>
            <PageLink to={`/chat/${one.conversationRef}`} className="picker-item" current={one.conversationRef === current} onFollow={onPick}>
              <span className="picker-title" dir="auto">
                {one.title ?? one.sessionKey}
              </span>
              <span className="hint">{[nameOf(one.agentId), ago(one.updatedAt), ...(one.tags ?? []).map((tag) => `#${tag}`)].join(' · ')}</span>
            </PageLink>
            <IconButton icon="more" label={t('Change {title}', { title: one.title ?? one.sessionKey })} onClick={() => onChange(one)} />
          </li>
        ))}
      </ul>
    </>
  );
}

/** Chats whose title matches, then messages that contain all terms, on the server. */
function FoundChats({ query, ...rows }: RowsProps & { readonly query: string }) {
  const { client, chats } = useSession();
  const settled = useSettled(query);
  const list = useConversations(maxLimit, { source: 'chat' });
  const titled = useMemo(() => searchConversations(list.data?.sessions ?? [], query, chats.loaded()), [list.data, query, chats]);
  const found = useLoad(
    ['session.search', undefined, settled, maxFound],
    (signal) => client.call('session.search', { query: settled, limit: maxFound }, { signal }),
    { keepsPrevious: ([name]) => name === 'session.search' },
  );
  const shown = new Set(titled.map(({ conversationRef }) => conversationRef));
  const hits = (found.data?.mode === 'search' ? found.data.results : []).filter(
    ({ conversationRef }, index, all) => !shown.has(conversationRef) && all.findIndex((other) => other.conversationRef === conversationRef) === index,
  );
  const isDone = list.data !== undefined && found.data !== undefined && !found.loading && settled === query.trim();
  return (
    <>
      {found.error !== undefined && <Failure error={found.error} onRetry={found.reload} />}
      {titled.length > 0 && <Rows conversations={titled} {...rows} />}
      {hits.length > 0 && <h2 className="picker-label">{t('In messages')}</h2>}
      <ul className="picker-list" aria-label={t('Found messages')}>
        {hits.map(({ conversationRef, title, sessionKey, snippet }) => (
          <li key={conversationRef}>
            <PageLink to={`/chat/${conversationRef}`} className="picker-item" current={conversationRef === rows.current} onFollow={rows.onPick}>
              <span className="picker-title" dir="auto">
                {title ?? sessionKey}
              </span>
              <span className="hint cut" dir="auto">
                {snippet}
              </span>
            </PageLink>
          </li>
        ))}
      </ul>
      <p className="hint pad" role="status">
        {!isDone ? t('Searching…') : titled.length + hits.length === 0 ? t('Nothing found in titles and messages.') : ''}
      </p>
    </>
  );
}
