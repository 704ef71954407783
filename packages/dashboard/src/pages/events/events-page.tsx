import { t, tx } from '../../language.ts';
import type { EventKind } from '@gatehouse/contract';
import { useCallback, useMemo, useState } from 'react';
import { useSession } from '../../data/context.ts';
import { joinEntries } from '../../data/event-history.ts';
import { plural } from '../../data/format.ts';
import type { FeedEntry, LiveState } from '../../data/live.ts';
import { useStore } from '../../data/store.ts';
import { Badge, Button, Empty, Failure, Field, Page, Skeleton, type Tone } from '../../ui/parts.tsx';
import { EventEntry } from './event-entry.tsx';
import { categories, chooseRange, type EventFilters, filterEntries, noFilters, ranges } from './filters.ts';
import { useHistory } from './use-history.ts';

const shownAtFirst = 300;

const connectionLabels: Record<LiveState['connection'], { readonly tone: Tone; readonly text: string }> = {
  connecting: { tone: 'neutral', text: t('Connecting…') },
  open: { tone: 'good', text: t('Live') },
  waiting: { tone: 'warn', text: t('Connection lost, reconnecting') },
  refused: { tone: 'bad', text: t('Not connected') },
};

/** Stored events and those that arrive, newest first; the live feed continues while other pages are open. */
export function EventsPage() {
  const { live, admin } = useSession();
  const { entries, connection } = useStore(live.state);
  const streaming = useStore(live.withStreaming);
  const [off, setOff] = useState<ReadonlySet<string>>(new Set());
  const [query, setQuery] = useState('');
  const [frozen, setFrozen] = useState<readonly FeedEntry[]>();
  const [filters, setFilters] = useState<EventFilters>(noFilters);
  /** Stored events up to this one are hidden. */
  const [clearedTo, setClearedTo] = useState(0);
  const history = useHistory(filters);
  const arrived = frozen ?? entries;
  const all = useMemo(
    () =>
      joinEntries(
        history.entries.filter(({ id = 0 }) => id > clearedTo),
        arrived,
      ),
    [history.entries, clearedTo, arrived],
  );
  const shown = useMemo(() => filterEntries(all, filters, { off, query }), [all, filters, off, query]);
  const maxShown = shownAtFirst + history.entries.length;
  const behind = frozen === undefined ? 0 : (entries.at(-1)?.number ?? 0) - (frozen.at(-1)?.number ?? 0);
  const state = connectionLabels[connection];

  const showOnly = useCallback((kind: EventKind) => setFilters((current) => ({ ...current, kind })), []);

  const toggle = (category: string): void => {
    const next = new Set(off);
    if (!next.delete(category)) next.add(category);
    setOff(next);
  };

  return (
    <Page
      title={t('Events')}
      lead={admin ? t('All events of the gateway, live.') : t('Events of your conversations and of the gateway, live.')}
      actions={
        <>
          <Badge tone={state.tone}>{state.text}</Badge>
          <Button icon={frozen === undefined ? 'pause' : 'play'} onClick={() => setFrozen(frozen === undefined ? entries : undefined)}>
            {frozen === undefined ? t('Pause') : behind > 0 ? t('Resume ({behind} new)', { behind }) : t('Resume')}
          </Button>
          <Button
            icon="trash"
            onClick={() => {
              setClearedTo(Math.max(clearedTo, ...all.map(({ id = 0 }) => id)));
              live.clear();
              setFrozen(undefined);
            }}
          >
            {t('Clear')}
          </Button>
        </>
      }
    >
      <TimeFilter filters={filters} onChange={setFilters} />
      <div className="toolbar">
        {filters.kind !== undefined && (
          <Button
            small
            icon="close"
            label={t('Show all kinds, not only {kind}', { kind: filters.kind })}
            onClick={() => setFilters({ ...filters, kind: undefined })}
          >
            {tx('Only {kind}', { kind: filters.kind })}
          </Button>
        )}
        <fieldset className="chips" hidden={filters.kind !== undefined}>
          <legend className="visually-hidden">{t('Categories')}</legend>
          {categories.map((category) => (
            <button key={category} type="button" className="chip" aria-pressed={!off.has(category)} onClick={() => toggle(category)}>
              {category}
            </button>
          ))}
        </fieldset>
        <input
          type="search"
          aria-label={t('Filter by kind or content')}
          placeholder={t('Filter by kind or content')}
          value={query}
          onChange={(event) => setQuery(event.target.value)}
        />
        <label className="check">
          <input type="checkbox" checked={streaming} onChange={(event) => live.setStreaming(event.target.checked)} />
          {t('Text deltas of answers')}
        </label>
      </div>
      {history.error !== undefined && <Failure error={history.error} onRetry={history.reload} />}
      {shown.length === 0 && history.loading && <Skeleton lines={6} />}
      {shown.length === 0 && !history.loading && (
        <Empty title={all.length === 0 ? t('No events') : t('No matching events')}>
          {all.length === 0 && <p>{t('Events appear here automatically, for example when you chat in another tab.')}</p>}
        </Empty>
      )}
      {shown.length > 0 && (
        <>
          <p className="hint">{plural(shown.length, 'event')}</p>
          <ol className="feed">
            {shown.slice(0, maxShown).map((entry) => (
              <li key={entry.id ?? `live-${entry.number}`}>
                <EventEntry entry={entry} onOnly={showOnly} />
              </li>
            ))}
          </ol>
        </>
      )}
      {history.loadOlder !== undefined && (
        <div className="pages">
          <Button small disabled={history.loading} onClick={history.loadOlder}>
            {t('Load older events')}
          </Button>
        </div>
      )}
    </Page>
  );
}

function TimeFilter({ filters, onChange }: { readonly filters: EventFilters; readonly onChange: (filters: EventFilters) => void }) {
  return (
    <div className="toolbar">
      <fieldset className="chips">
        <legend className="visually-hidden">{t('Time')}</legend>
        {ranges.map(({ id, name }) => (
          <button
            key={id}
            type="button"
            className="chip"
            aria-pressed={filters.range === id}
            onClick={() => onChange(chooseRange(filters, id, Date.now()))}
          >
            {name}
          </button>
        ))}
      </fieldset>
      {filters.range === 'custom' && (
        <>
          <Field label={t('From')}>
            {(id) => <input id={id} type="datetime-local" onChange={({ target }) => onChange({ ...filters, sinceMs: timeOf(target.value) })} />}
          </Field>
          <Field label={t('Until')}>
            {(id) => <input id={id} type="datetime-local" onChange={({ target }) => onChange({ ...filters, untilMs: timeOf(target.value) })} />}
          </Field>
        </>
      )}
    </div>
  );
}

function timeOf(value: string): number | undefined {
  const time = Date.parse(value);
  return Number.isNaN(time) ? undefined : time;
}
