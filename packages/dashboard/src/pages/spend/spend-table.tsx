import { t, tx } from '../../language.ts';
import { useState } from 'react';
import { count, money, percent, plural, shortCount } from '../../data/format.ts';
import { ShareBar } from '../../ui/charts/share-bar.tsx';
import { PageLink } from '../../ui/link.tsx';
import { saveCsv } from '../../ui/csv.ts';
import { Button } from '../../ui/parts.tsx';
import { SortHeading, useSorting } from '../../ui/sort.tsx';
import { type Dimension, type Measure, measures, type Usage, type UsageRow } from './load-spend.ts';

const operations: Readonly<Record<string, string>> = {
  interactive: 'turns',
  compaction: 'summaries',
  condensation: t('summaries of summaries'),
  memoryReview: t('memory review'),
  embedding: 'embeddings',
  evaluation: t('evaluations, replays and tests'),
};

const rowsAtFirst = 20;

type SortColumn = 'name' | 'cost' | 'tokens' | 'cached' | 'calls';

function cellOf(row: UsageRow, column: SortColumn): string | number | null {
  if (column === 'name') return row.keys[0] ?? null;
  if (column === 'cost') return row.costUsd;
  if (column === 'tokens') return row.inputTokens + row.outputTokens;
  if (column === 'calls') return row.calls;
  return row.inputTokens === 0 ? null : row.cacheReadTokens / row.inputTokens;
}

function csvOf(heading: string, rows: readonly UsageRow[]) {
  const titles = [
    heading,
    t('Cost (USD)'),
    t('Input tokens'),
    t('Output tokens'),
    t('Cached input tokens'),
    t('Saved (USD)'),
    t('Calls'),
    t('Calls without a price'),
  ];
  return [
    titles,
    ...rows.map((row) => [row.keys[0], row.costUsd, row.inputTokens, row.outputTokens, row.cacheReadTokens, row.savedUsd, row.calls, row.unpriced]),
  ];
}

/** Lists the largest items of spend in a table with a bar in each row. */
export function SpendTable({
  dimension,
  name,
  report,
  measure,
}: {
  readonly dimension: Dimension;
  readonly name: string;
  readonly report: Usage;
  readonly measure: Measure;
}) {
  const { valueOf } = measures.find(({ id }) => id === measure) ?? measures[0];
  const sorting = useSorting(report.rows, cellOf, { initial: { by: measure, descending: true }, descendingFirst: (column) => column !== 'name' });
  const [isWhole, setWhole] = useState(false);
  const shown = isWhole ? sorting.rows : sorting.rows.slice(0, rowsAtFirst);
  const all = valueOf(report.totals);
  const heading = name.replace('By ', '').replace(/^./, (letter) => letter.toUpperCase());
  return (
    <section className="panel" aria-label={name}>
      <div className="panel-head">
        <h2>{name}</h2>
        <span className="grow" />
        <Button
          small
          icon="download"
          label={t('Export {name} as CSV', { name: name.toLowerCase() })}
          onClick={() => saveCsv(`spend-${name.toLowerCase().replace(' ', '-')}.csv`, csvOf(heading, sorting.rows))}
        >
          {t('CSV')}
        </Button>
      </div>
      <div className="table-scroll" tabIndex={0} role="region" aria-label={t('{name}, table', { name })}>
        <table>
          <thead>
            <tr>
              <SortHeading sorting={sorting} by="name">
                {heading}
              </SortHeading>
              <SortHeading sorting={sorting} by="cost" align="right">
                {t('Cost')}
              </SortHeading>
              <SortHeading sorting={sorting} by="tokens" align="right">
                {t('Tokens')}
              </SortHeading>
              <SortHeading sorting={sorting} by="cached" align="right">
                {t('Cached')}
              </SortHeading>
              <SortHeading sorting={sorting} by="calls" align="right">
                {t('Calls')}
              </SortHeading>
            </tr>
          </thead>
          <tbody>
            {shown.map((row) => (
              <tr key={row.keys[0] ?? ''}>
                <th scope="row" className="share-cell">
                  <NameOf dimension={dimension} name={row.keys[0] ?? null} />
                  <ShareBar share={all === 0 ? 0 : valueOf(row) / all} />
                </th>
                <td data-align="right">
                  {row.costUsd === null ? t('unknown') : money(row.costUsd)}
                  {row.costUsd !== null && row.unpriced > 0 && (
                    <span title={t('{calls} without a known price', { calls: plural(row.unpriced, 'call') })}> +?</span>
                  )}
                </td>
                <td
                  data-align="right"
                  title={t('{inputTokens} in, {outputTokens} out', { inputTokens: count(row.inputTokens), outputTokens: count(row.outputTokens) })}
                >
                  {shortCount(row.inputTokens + row.outputTokens)}
                </td>
                <td data-align="right">{row.inputTokens === 0 ? '–' : percent(row.cacheReadTokens / row.inputTokens)}</td>
                <td data-align="right">{count(row.calls)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {sorting.rows.length > rowsAtFirst && !isWhole && (
        <Button small look="quiet" onClick={() => setWhole(true)}>
          {t('Show all {rows}', { rows: count(sorting.rows.length) })}
        </Button>
      )}
      {report.truncated && <p className="hint">{tx('The most expensive {rows}.', { rows: count(report.rows.length) })}</p>}
    </section>
  );
}

function NameOf({ dimension, name }: { readonly dimension: Dimension; readonly name: string | null }) {
  if (name === null) return <span className="hint">{dimension === 'conversation' ? t('none stored') : t('none')}</span>;
  if (dimension === 'operation') return <>{operations[name] ?? name}</>;
  if (dimension === 'conversation')
    return (
      <PageLink to={`/conversations/${name}`} className="mono">
        {name.slice(0, 12)}…
      </PageLink>
    );
  return <span className="mono">{name}</span>;
}
