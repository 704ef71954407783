import { memo, useMemo, useState } from 'react';
import { useSession } from '../../data/context.ts';
import { eventKinds } from '../../data/event-kinds.ts';
import { clockTime, dateTime, plural } from '../../data/format.ts';
import type { FeedEntry, LiveState } from '../../data/live.ts';
import { useStore } from '../../data/store.ts';
import { JsonTree } from '../../ui/json-tree.tsx';
import { Badge, Button, Empty, Page, type Tone } from '../../ui/parts.tsx';
import { summarize } from './summary.ts';

const categories = [...new Set(eventKinds.map(({ category }) => category))];
const categoryOf = new Map<string, string>(eventKinds.map(({ kind, category }) => [kind, category]));
const maxShown = 300;

const connectionLabels: Record<LiveState['connection'], { readonly tone: Tone; readonly text: string }> = {
  connecting: { tone: 'neutral', text: 'Connecting…' },
  open: { tone: 'good', text: 'Live' },
  waiting: { tone: 'warn', text: 'Connection lost, reconnecting' },
  refused: { tone: 'bad', text: 'Not connected' },
};

/** The live feed of events, newest first; it continues while other pages are open. */
export function EventsPage() {
  const { live, admin } = useSession();
  const { entries, connection } = useStore(live.state);
  const streaming = useStore(live.withStreaming);
  const [off, setOff] = useState<ReadonlySet<string>>(new Set());
  const [query, setQuery] = useState('');
  const [frozen, setFrozen] = useState<readonly FeedEntry[]>();
  const source = frozen ?? entries;
  const shown = useMemo(() => filterEntries(source, off, query), [source, off, query]);
  const behind = frozen === undefined ? 0 : (entries.at(-1)?.number ?? 0) - (frozen.at(-1)?.number ?? 0);
  const state = connectionLabels[connection];

  const toggle = (category: string): void => {
    const next = new Set(off);
    if (!next.delete(category)) next.add(category);
    setOff(next);
  };

  return (
    <Page
      title="Events"
      lead={admin ? 'All events of the gateway, live.' : 'Events of your conversations and of the gateway, live.'}
      actions={
        <>
          <Badge tone={state.tone}>{state.text}</Badge>
          <Button icon={frozen === undefined ? 'pause' : 'play'} onClick={() => setFrozen(frozen === undefined ? entries : undefined)}>
            {frozen === undefined ? 'Pause' : behind > 0 ? `Resume (${behind} new)` : 'Resume'}
          </Button>
          <Button
            icon="trash"
            onClick={() => {
              live.clear();
              setFrozen(undefined);
            }}
          >
            Clear
          </Button>
        </>
      }
    >
      <div className="toolbar">
        <fieldset className="chips">
          <legend className="visually-hidden">Categories</legend>
          {categories.map((category) => (
            <button key={category} type="button" className="chip" aria-pressed={!off.has(category)} onClick={() => toggle(category)}>
              {category}
            </button>
          ))}
        </fieldset>
        <input
          type="search"
          aria-label="Filter by kind or content"
          placeholder="Filter by kind or content"
          value={query}
          onChange={(event) => setQuery(event.target.value)}
        />
        <label className="check">
          <input type="checkbox" checked={streaming} onChange={(event) => live.setStreaming(event.target.checked)} />
          Text deltas of answers
        </label>
      </div>
      {shown.length === 0 ? (
        <Empty title={entries.length === 0 ? 'No events since this tab was opened' : 'No matching events'}>
          {entries.length === 0 && <p>Events appear here automatically, for example when you chat in another tab.</p>}
        </Empty>
      ) : (
        <>
          <p className="hint">
            {plural(shown.length, 'event')}
            {shown.length > maxShown && `, showing the newest ${maxShown}`}
          </p>
          <ol className="feed">
            {shown.slice(0, maxShown).map((entry) => (
              <li key={entry.number}>
                <Entry entry={entry} />
              </li>
            ))}
          </ol>
        </>
      )}
    </Page>
  );
}

const Entry = memo(function Entry({ entry: { kind, payload, atMs } }: { readonly entry: FeedEntry }) {
  const [open, setOpen] = useState(false);
  if (kind === 'gap') return <p className="feed-gap">Some events are missing: the connection was lost for longer than the gateway keeps events.</p>;
  return (
    <details className="feed-entry" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <time dateTime={new Date(atMs).toISOString()} title={dateTime(atMs)}>
          {clockTime(atMs)}
        </time>
        <span className={`feed-kind ${toneOf(kind)}`}>{kind}</span>
        <span className="feed-text" dir="auto">
          {summarize(payload)}
        </span>
      </summary>
      {open && <JsonTree value={payload} />}
    </details>
  );
});

function toneOf(kind: string): Tone {
  if (/error|exhausted|degraded|injection/.test(kind)) return 'bad';
  if (/warn|cooldown|fallback/.test(kind)) return 'warn';
  return /^message|^session/.test(kind) ? 'accent' : 'neutral';
}

function filterEntries(entries: readonly FeedEntry[], off: ReadonlySet<string>, query: string): readonly FeedEntry[] {
  const wanted = query.trim().toLocaleLowerCase();
  return entries
    .filter(({ kind, payload }) => {
      if (kind === 'gap') return true;
      if (off.has(categoryOf.get(kind) ?? 'System')) return false;
      return wanted === '' || kind.includes(wanted) || JSON.stringify(payload).toLocaleLowerCase().includes(wanted);
    })
    .toReversed();
}
