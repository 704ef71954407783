import { t } from '../../language.ts';
import { ago, dateTime, percent } from '../../data/format.ts';
import { ShareBar } from '../../ui/charts/share-bar.tsx';
import { Badge } from '../../ui/parts.tsx';
import type { ListedEntry } from './find-memories.ts';
import { derivedText, trustTone } from './labels.ts';

/** Lists memories, with checkboxes where a selection can be acted on, and with the match details of a search. */
export function EntryList({
  entries,
  selected,
  onSelect,
  onOpen,
  onTag,
}: {
  readonly entries: readonly ListedEntry[];
  readonly selected: ReadonlySet<string> | undefined;
  readonly onSelect: (selected: ReadonlySet<string>) => void;
  readonly onOpen: (id: string) => void;
  readonly onTag: (tag: string) => void;
}) {
  const toggle = (id: string): void => {
    const next = new Set(selected);
    if (!next.delete(id)) next.add(id);
    onSelect(next);
  };
  const all = selected !== undefined && entries.every(({ id }) => selected.has(id));
  return (
    <>
      {selected !== undefined && (
        <label className="check">
          <input type="checkbox" checked={all} onChange={() => onSelect(all ? new Set() : new Set(entries.map(({ id }) => id)))} />
          {t('Select all shown')}
        </label>
      )}
      <ul className="rows">
        {entries.map((entry) => (
          <li key={entry.id} className="row memory-row">
            {selected !== undefined && (
              <input
                type="checkbox"
                aria-label={t('Select: {content}', { content: entry.content.slice(0, 60) })}
                checked={selected.has(entry.id)}
                onChange={() => toggle(entry.id)}
              />
            )}
            <div className="row-main">
              <button type="button" className="memory-text" dir="auto" onClick={() => onOpen(entry.id)}>
                {entry.content}
              </button>
              <p className="badges">
                <Badge>{entry.memoryType}</Badge>
                <Badge tone={trustTone[entry.trustLevel]}>{entry.trustLevel}</Badge>
                {entry.proofCount > 0 && <Badge tone="accent">{derivedText(entry.proofCount)}</Badge>}
                {entry.tags.map((tag) => (
                  <button key={tag} type="button" className="tag" onClick={() => onTag(tag)} aria-label={t('Filter by tag {tag}', { tag })}>
                    {tag}
                  </button>
                ))}
                <time className="hint" dateTime={new Date(entry.createdAt).toISOString()} title={dateTime(entry.createdAt)}>
                  {ago(entry.createdAt)}
                </time>
              </p>
            </div>
            {entry.score !== undefined && <Reasons score={entry.score} explain={entry.explain} />}
          </li>
        ))}
      </ul>
    </>
  );
}

/** Shows why a memory was found: its rank by terms, its similarity by meaning, and the combined score. */
function Reasons({ score, explain }: { readonly score: number; readonly explain: ListedEntry['explain'] }) {
  const { textRank, vectorSimilarity } = explain ?? {};
  return (
    <dl className="reasons">
      <dt>{t('Score')}</dt>
      <dd>
        <ShareBar share={score} /> {percent(score)}
      </dd>
      <dt>{t('Terms')}</dt>
      <dd>
        <ShareBar share={textRank === undefined ? 0 : 1 / textRank} look="second" />{' '}
        {textRank === undefined ? t('no match') : t('rank {textRank}', { textRank })}
      </dd>
      <dt>{t('Meaning')}</dt>
      <dd>
        <ShareBar share={vectorSimilarity ?? 0} look="third" /> {vectorSimilarity === undefined ? t('not similar') : vectorSimilarity.toFixed(2)}
      </dd>
    </dl>
  );
}
