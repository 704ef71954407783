import { type KeyboardEvent, useEffect, useState } from 'react';
import { useSession } from '../../data/context.ts';
import { count, plural } from '../../data/format.ts';
import type { InboxMessage } from '../../data/inbox.ts';
import { useStore } from '../../data/store.ts';
import { useAction } from '../../data/use-action.ts';
import { PageLink } from '../../ui/link.tsx';
import { Badge, Button, Empty, Failure, Page, Skeleton } from '../../ui/parts.tsx';
import { SearchField } from '../../ui/search-field.tsx';
import { When } from '../../ui/when.tsx';
import { type InboxFilter, matching, sources, subjectOf } from './messages.ts';
import { MessageView } from './message-view.tsx';

const sourceKinds = Object.keys(sources) as InboxMessage['source'][];
/** Matches of a filter that are enough without a click. */
const enough = 25;
/** The gateway keeps so many of each owner. */
const maxLoaded = 1000;

/** Messages of jobs, heartbeats, webhooks, sub-agents and graphs: a list, and next to it the one that the address names. */
export function InboxPage({ chosen }: { readonly chosen: string | undefined }) {
  const { inbox, admin } = useSession();
  const { messages, unread, hasMore, loading, error } = useStore(inbox.state);
  const [filter, setFilter] = useState<InboxFilter>({ unreadOnly: false, source: '', query: '' });
  const marking = useAction();
  const found = matching(messages, filter, chosen);
  const isFiltered = filter.unreadOnly || filter.source !== '' || filter.query.trim() !== '';
  const message = messages.find(({ id }) => id === chosen);
  const mayLoad = hasMore && messages.length < maxLoaded;
  const isMissing = chosen !== undefined && message === undefined;
  const wantsMore = mayLoad && !loading && error === undefined && ((isFiltered && found.length < enough) || isMissing);
  useEffect(() => {
    if (wantsMore) inbox.more();
  }, [wantsMore, inbox, messages.length]);
  useEffect(() => inbox.open(), [inbox]);
  const isUnread = message?.readAt === null;
  useEffect(() => {
    if (chosen !== undefined && isUnread) void inbox.markRead([chosen]).catch(() => undefined);
  }, [chosen, isUnread, inbox]);

  return (
    <Page
      wide
      help="dashboard"
      title="Inbox"
      lead={
        admin
          ? 'What jobs, heartbeats, webhooks, sub-agents and graphs reported, to all users.'
          : 'What your jobs, heartbeats, sub-agents and graphs reported.'
      }
      actions={
        <Button disabled={unread === 0 || marking.busy} onClick={() => marking.run(() => inbox.markRead('all'))}>
          Mark all as read
        </Button>
      }
    >
      {marking.error !== undefined && <Failure error={marking.error} />}
      {error !== undefined && <Failure error={error} onRetry={inbox.reload} />}
      <div className={chosen === undefined ? 'panes' : 'panes chosen'}>
        <div className="panes-list">
          <Filters filter={filter} onChange={setFilter} />
          <p role="status" className="hint">
            {messages.length === 0
              ? ''
              : isFiltered
                ? `${plural(found.length, 'message')} found.`
                : unread === 0
                  ? 'No unread messages.'
                  : `${count(unread)} unread.`}
          </p>
          {messages.length === 0 && loading && <Skeleton lines={6} />}
          {messages.length === 0 && !loading && error === undefined && (
            <Empty title="No messages yet">
              <p>
                Results arrive here when agents work while nobody watches. Add a <PageLink to="/schedule">job</PageLink>, or start a{' '}
                <PageLink to="/graphs">graph</PageLink>.
              </p>
            </Empty>
          )}
          {messages.length > 0 && found.length === 0 && !loading && !wantsMore && (
            <Empty title="No message matches">
              <Button onClick={() => setFilter({ unreadOnly: false, source: '', query: '' })}>Show all</Button>
            </Empty>
          )}
          <ul className="panes-items" aria-label="Messages" onKeyDown={moveFocus}>
            {found.map((one) => (
              <li key={one.id}>
                <MessageLink message={one} isOpen={one.id === chosen} />
              </li>
            ))}
          </ul>
          {mayLoad && (
            <div className="pages">
              <Button small disabled={loading} onClick={inbox.more}>
                Older
              </Button>
            </div>
          )}
        </div>
        <div className="panes-detail">
          {message !== undefined ? (
            <MessageView key={message.id} message={message} />
          ) : isMissing ? (
            loading || wantsMore ? (
              <Skeleton lines={6} />
            ) : (
              <Empty title="This message is gone">
                <PageLink to="/inbox">Back to the inbox</PageLink>
              </Empty>
            )
          ) : (
            messages.length > 0 && (
              <Empty title="Select a message to read it">
                <p>The arrow keys move through the list, Enter opens a message.</p>
              </Empty>
            )
          )}
        </div>
      </div>
    </Page>
  );
}

/** Moves the focus to the next or previous link of a list. */
function moveFocus(event: KeyboardEvent<HTMLElement>): void {
  const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
  if (step === 0) return;
  const links = [...event.currentTarget.querySelectorAll('a')];
  const next = links[links.findIndex((one) => one === document.activeElement) + step];
  if (next === undefined) return;
  event.preventDefault();
  next.focus();
}

function Filters({ filter, onChange }: { readonly filter: InboxFilter; readonly onChange: (filter: InboxFilter) => void }) {
  return (
    <div className="toolbar" role="search" aria-label="Messages">
      <SearchField label="Search messages" value={filter.query} onChange={(query) => onChange({ ...filter, query })} />
      <select
        aria-label="Kind"
        value={filter.source}
        onChange={({ target }) => onChange({ ...filter, source: sourceKinds.find((one) => one === target.value) ?? '' })}
      >
        <option value="">All kinds</option>
        {sourceKinds.map((source) => (
          <option key={source} value={source}>
            {sources[source]}
          </option>
        ))}
      </select>
      <button type="button" className="chip" aria-pressed={filter.unreadOnly} onClick={() => onChange({ ...filter, unreadOnly: !filter.unreadOnly })}>
        Unread
      </button>
    </div>
  );
}

function MessageLink({ message, isOpen }: { readonly message: InboxMessage; readonly isOpen: boolean }) {
  const { id, source, level, agentId, createdAt, readAt, asks } = message;
  const isUnread = readAt === null;
  return (
    <PageLink to={`/inbox/${id}`} className={isUnread ? 'panes-item unread' : 'panes-item'} current={isOpen}>
      <span className="panes-subject" dir="auto">
        {isUnread && <span className="visually-hidden">Unread: </span>}
        {subjectOf(message)}
      </span>
      <span className="facts-line">
        <span>{`${sources[source]} of ${agentId}`}</span>
        {level === 'alert' && asks === undefined && <Badge tone="bad">Alert</Badge>}
        {asks !== undefined && <Badge tone="warn">Question</Badge>}
        <When atMs={createdAt} />
      </span>
    </PageLink>
  );
}
