import { t } from '../../language.ts';
import type { EventKind } from '@gatehouse/contract';
import { memo, useState } from 'react';
import { clockTime, dateTime } from '../../data/format.ts';
import type { FeedEntry } from '../../data/live.ts';
import { Icon } from '../../ui/icon.tsx';
import { JsonTree } from '../../ui/json-tree.tsx';
import { PageLink } from '../../ui/link.tsx';
import { objectOf } from '../../ui/object-link.tsx';
import { IconButton, type Tone } from '../../ui/parts.tsx';
import { isKind } from './filters.ts';
import { summarize } from './summary.ts';

/** One event in a line, with its payload when it is opened and links to what it belongs to. */
export const EventEntry = memo(function EventEntry({
  entry: { kind, payload, atMs },
  onOnly,
}: {
  readonly entry: FeedEntry;
  /** Shows only events of a kind. */
  readonly onOnly: (kind: EventKind) => void;
}) {
  const [open, setOpen] = useState(false);
  if (kind === 'gap')
    return <p className="feed-gap">{t('Some events are missing: the connection was lost for longer than the gateway keeps events.')}</p>;
  const conversationRef = textOf(payload, 'conversationRef');
  const traceId = textOf(payload, 'traceId');
  const object = objectOf(payload);
  return (
    <div className="feed-row">
      <details className="feed-entry" onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>
          <time dateTime={new Date(atMs).toISOString()} title={dateTime(atMs)}>
            {isToday(atMs) ? clockTime(atMs) : dateTime(atMs)}
          </time>
          <span className={`feed-kind ${toneOf(kind)}`}>{kind}</span>
          <span className="feed-text" dir="auto">
            {summarize(payload)}
          </span>
        </summary>
        {open && <JsonTree value={payload} />}
      </details>
      <span className="feed-actions">
        {object !== undefined && (
          <PageLink to={object.path} className="icon-button" label={t('Open {name}', { name: object.name })}>
            <Icon name="branch" />
          </PageLink>
        )}
        {conversationRef !== undefined && (
          <PageLink to={`/conversations/${conversationRef}`} className="icon-button" label={t('Open conversation')}>
            <Icon name="chat" />
          </PageLink>
        )}
        {traceId !== undefined && (
          <PageLink to={`/traces/${encodeURIComponent(traceId)}`} className="icon-button" label={t('Open trace')}>
            <Icon name="pulse" />
          </PageLink>
        )}
        {isKind(kind) && <IconButton icon="sliders" label={t('Only {kind}', { kind })} onClick={() => onOnly(kind)} />}
      </span>
    </div>
  );
});

function isToday(atMs: number): boolean {
  return new Date(atMs).toDateString() === new Date().toDateString();
}

function textOf(payload: unknown, name: string): string | undefined {
  const value = typeof payload === 'object' && payload !== null ? Object.getOwnPropertyDescriptor(payload, name)?.value : undefined;
  return typeof value === 'string' ? value : undefined;
}

function toneOf(kind: string): Tone {
  if (/error|exhausted|degraded|injection/.test(kind)) return 'bad';
  if (/warn|cooldown|fallback/.test(kind)) return 'warn';
  return /^message|^session/.test(kind) ? 'accent' : 'neutral';
}
