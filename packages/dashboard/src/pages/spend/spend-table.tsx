import { count, money, percent, plural, shortCount } from '../../data/format.ts';
import { ShareBar } from '../../ui/charts/share-bar.tsx';
import { PageLink } from '../../ui/link.tsx';
import { type Dimension, type Measure, measures, type Usage } from './load-spend.ts';

const operations: Readonly<Record<string, string>> = {
  interactive: 'turns',
  compaction: 'summaries',
  condensation: 'summaries of summaries',
  memoryReview: 'memory review',
  embedding: 'embeddings',
};

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
  const rows = report.rows.toSorted((a, b) => valueOf(b) - valueOf(a));
  const all = valueOf(report.totals);
  return (
    <section className="panel" aria-label={name}>
      <h2>{name}</h2>
      <div className="table-scroll" tabIndex={0} role="region" aria-label={`${name}, table`}>
        <table>
          <thead>
            <tr>
              <th scope="col">{name.replace('By ', '').replace(/^./, (letter) => letter.toUpperCase())}</th>
              <th scope="col" data-align="right">
                Cost
              </th>
              <th scope="col" data-align="right">
                Tokens
              </th>
              <th scope="col" data-align="right">
                Cached
              </th>
              <th scope="col" data-align="right">
                Calls
              </th>
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <tr key={row.keys[0] ?? ''}>
                <th scope="row" className="share-cell">
                  <NameOf dimension={dimension} name={row.keys[0] ?? null} />
                  <ShareBar share={all === 0 ? 0 : valueOf(row) / all} />
                </th>
                <td data-align="right">
                  {row.costUsd === null ? 'unknown' : money(row.costUsd)}
                  {row.costUsd !== null && row.unpriced > 0 && <span title={`${plural(row.unpriced, 'call')} without a known price`}> +?</span>}
                </td>
                <td data-align="right" title={`${count(row.inputTokens)} in, ${count(row.outputTokens)} out`}>
                  {shortCount(row.inputTokens + row.outputTokens)}
                </td>
                <td data-align="right">{row.inputTokens === 0 ? '–' : percent(row.cacheReadTokens / row.inputTokens)}</td>
                <td data-align="right">{count(row.calls)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function NameOf({ dimension, name }: { readonly dimension: Dimension; readonly name: string | null }) {
  if (name === null) return <span className="hint">{dimension === 'conversation' ? 'none stored' : 'none'}</span>;
  if (dimension === 'operation') return <>{operations[name] ?? name}</>;
  if (dimension === 'conversation')
    return (
      <PageLink to={`/conversations/${name}`} className="mono">
        {name.slice(0, 12)}…
      </PageLink>
    );
  return <span className="mono">{name}</span>;
}
