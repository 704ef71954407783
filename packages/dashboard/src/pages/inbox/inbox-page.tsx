import { t, tx } from '../../language.ts';
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
      title={t('Inbox')}
      lead={
        admin
          ? t('What jobs, heartbeats, webhooks, sub-agents and graphs reported, to all users.')
          : t('What your jobs, heartbeats, sub-agents and graphs reported.')
      }
      actions={
        <Button disabled={unread === 0 || marking.busy} onClick={() => marking.run(() => inbox.markRead('all'))}>
          {t('Mark all as read')}
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
                ? t('{messages} found.', { messages: plural(found.length, 'message') })
                : unread === 0
                  ? t('No unread messages.')
                  : t('{unread} unread.', { unread: count(unread) })}
          </p>
          {messages.length === 0 && loading && <Skeleton lines={6} />}
          {messages.length === 0 && !loading && error === undefined && (
            <Empty title={t('No messages yet')}>
              <p>
                {tx('Results arrive here when agents work while nobody watches. Add a {link}, or start a {link2}.', {
                  link: <PageLink to="/schedule">{t('job')}</PageLink>,
                  link2: <PageLink to="/graphs">{t('graph')}</PageLink>,
                })}
              </p>
            </Empty>
          )}
          {messages.length > 0 && found.length === 0 && !loading && !wantsMore && (
            <Empty title={t('No message matches')}>
              <Button onClick={() => setFilter({ unreadOnly: false, source: '', query: '' })}>{t('Show all')}</Button>
            </Empty>
          )}
          <ul className="panes-items" aria-label={t('Messages')} onKeyDown={moveFocus}>
            {found.map((one) => (
              <li key={one.id}>
                <MessageLink message={one} isOpen={one.id === chosen} />
              </li>
            ))}
          </ul>
          {mayLoad && (
            <div className="pages">
              <Button small disabled={loading} onClick={inbox.more}>
                {t('Older')}
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
              <Empty title={t('This message is gone')}>
                <PageLink to="/inbox">{t('Back to the inbox')}</PageLink>
              </Empty>
            )
          ) : (
            messages.length > 0 && (
              <Empty title={t('Select a message to read it')}>
                <p>{t('The arrow keys move through the list, Enter opens a message.')}</p>
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
    <div className="toolbar" role="search" aria-label={t('Messages')}>
      <SearchField label={t('Search messages')} value={filter.query} onChange={(query) => onChange({ ...filter, query })} />
      <select
        aria-label={t('Kind')}
        value={filter.source}
        onChange={({ target }) => onChange({ ...filter, source: sourceKinds.find((one) => one === target.value) ?? '' })}
      >
        <option value="">{t('All kinds')}</option>
        {sourceKinds.map((source) => (
          <option key={source} value={source}>
            {sources[source]}
          </option>
        ))}
      </select>
      <button type="button" className="chip" aria-pressed={filter.unreadOnly} onClick={() => onChange({ ...filter, unreadOnly: !filter.unreadOnly })}>
        {t('Unread')}
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
        {isUnread && <span className="visually-hidden">{t('Unread:')} </span>}
        {subjectOf(message)}
      </span>
      <span className="facts-line">
        <span>{t('{sources} of {agentId}', { sources: sources[source], agentId })}</span>
        {level === 'alert' && asks === undefined && <Badge tone="bad">{t('Alert')}</Badge>}
        {asks !== undefined && <Badge tone="warn">{t('Question')}</Badge>}
        <When atMs={createdAt} />
      </span>
    </PageLink>
  );
}
