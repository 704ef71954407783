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

const connectionWords: Record<LiveState['connection'], { readonly tone: Tone; readonly words: string }> = {
  connecting: { tone: 'neutral', words: 'Connecting…' },
  open: { tone: 'good', words: 'Live' },
  waiting: { tone: 'warn', words: 'Connection lost, trying again' },
  refused: { tone: 'bad', words: 'Not connected' },
};

/** The feed of everything that happens, newest first; it goes on while other pages are shown. */
export function EventsPage() {
  const { live, admin } = useSession();
  const { entries, connection } = useStore(live.state);
  const streaming = useStore(live.withStreaming);
  const [off, setOff] = useState<ReadonlySet<string>>(new Set());
  const [words, setWords] = useState('');
  const [frozen, setFrozen] = useState<readonly FeedEntry[]>();
  const source = frozen ?? entries;
  const shown = useMemo(() => filterEntries(source, off, words), [source, off, words]);
  const behind = frozen === undefined ? 0 : (entries.at(-1)?.number ?? 0) - (frozen.at(-1)?.number ?? 0);
  const state = connectionWords[connection];

  const toggle = (category: string): void => {
    const next = new Set(off);
    if (!next.delete(category)) next.add(category);
    setOff(next);
  };

  return (
    <Page
      title="Events"
      lead={admin ? 'Everything that happens, as it happens.' : 'What happens in your conversations, and to the gateway as a whole.'}
      actions={
        <>
          <Badge tone={state.tone}>{state.words}</Badge>
          <Button icon={frozen === undefined ? 'pause' : 'play'} onClick={() => setFrozen(frozen === undefined ? entries : undefined)}>
            {frozen === undefined ? 'Pause' : behind > 0 ? `Go on (${behind} new)` : 'Go on'}
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
          value={words}
          onChange={(event) => setWords(event.target.value)}
        />
        <label className="check">
          <input type="checkbox" checked={streaming} onChange={(event) => live.setStreaming(event.target.checked)} />
          Pieces of answers as they are written
        </label>
      </div>
      {shown.length === 0 ? (
        <Empty title={entries.length === 0 ? 'Nothing has happened since this tab was opened' : 'No event passes the filter'}>
          {entries.length === 0 && <p>Events appear here by themselves. A chat in another tab makes some.</p>}
        </Empty>
      ) : (
        <>
          <p className="hint">
            {plural(shown.length, 'event')}
            {shown.length > maxShown && `, the newest ${maxShown} shown`}
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
  if (kind === 'gap') return <p className="feed-gap">Some events were missed here: the connection was away longer than the gateway keeps them.</p>;
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

function filterEntries(entries: readonly FeedEntry[], off: ReadonlySet<string>, words: string): readonly FeedEntry[] {
  const wanted = words.trim().toLocaleLowerCase();
  return entries
    .filter(({ kind, payload }) => {
      if (kind === 'gap') return true;
      if (off.has(categoryOf.get(kind) ?? 'System')) return false;
      return wanted === '' || kind.includes(wanted) || JSON.stringify(payload).toLocaleLowerCase().includes(wanted);
    })
    .toReversed();
}
