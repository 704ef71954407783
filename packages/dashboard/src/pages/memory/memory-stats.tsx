import { t } from '../../language.ts';
import type { Result } from '@gatehouse/contract';
import { bytes, count, percent, plural } from '../../data/format.ts';
import type { Loaded } from '../../data/use-load.ts';
import { ShareBar } from '../../ui/charts/share-bar.tsx';
import { Failure } from '../../ui/parts.tsx';

/** Shows counts of memories by type and trust, and the state of the search index. */
export function MemoryStats({ stats }: { readonly stats: Loaded<Result<'memory.stats'>> }) {
  if (stats.error !== undefined) return <Failure error={stats.error} onRetry={stats.reload} />;
  const { data } = stats;
  if (data === undefined || data.totalEntries === 0) return null;
  const { totalEntries, byType, byTrustLevel, embeddedEntries, embeddingCacheHitRate, embeddingProvider, dbSizeBytes } = data;
  return (
    <section className="panel memory-stats" aria-label={t('Statistics')}>
      <Split name={t('By type')} parts={byType} total={totalEntries} />
      <Split name={t('By trust')} parts={byTrustLevel} total={totalEntries} />
      <dl className="facts">
        <dt>{t('Memories')}</dt>
        <dd>{count(totalEntries)}</dd>
        <dt>{t('Searchable by meaning')}</dt>
        <dd>
          {percent(embeddedEntries / totalEntries)} <span className="hint">({plural(embeddedEntries, 'vector')})</span>
        </dd>
        <dt>{t('Embedding provider')}</dt>
        <dd>{embeddingProvider ?? t('none: search by terms only')}</dd>
        {embeddingCacheHitRate !== undefined && (
          <>
            <dt>{t('Cache hit rate')}</dt>
            <dd>{embeddingCacheHitRate === null ? t('not used yet') : percent(embeddingCacheHitRate)}</dd>
          </>
        )}
        <dt>{t('Database')}</dt>
        <dd>{bytes(dbSizeBytes)}</dd>
      </dl>
    </section>
  );
}

function Split({
  name,
  parts,
  total,
}: {
  readonly name: string;
  readonly parts: Readonly<Record<string, number | undefined>>;
  readonly total: number;
}) {
  return (
    <div>
      <h3>{name}</h3>
      <dl className="split">
        {Object.entries(parts)
          .filter(([, value]) => (value ?? 0) > 0)
          .toSorted(([, a], [, b]) => (b ?? 0) - (a ?? 0))
          .map(([part, value = 0]) => (
            <div key={part}>
              <dt>{part}</dt>
              <dd>
                <ShareBar share={value / total} /> {count(value)}
              </dd>
            </div>
          ))}
      </dl>
    </div>
  );
}
