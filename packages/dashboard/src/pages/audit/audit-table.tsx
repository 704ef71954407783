import { t } from '../../language.ts';
import type { Result } from '@gatehouse/contract';
import { Fragment, useState } from 'react';
import { ago, dateTime } from '../../data/format.ts';
import { JsonTree } from '../../ui/json-tree.tsx';
import { PageLink } from '../../ui/link.tsx';
import { ObjectLink } from '../../ui/object-link.tsx';
import { Badge, type Tone } from '../../ui/parts.tsx';
import { SortHeading, useSorting } from '../../ui/sort.tsx';

export type AuditRecord = Result<'obs.audit.query'>['rows'][number];
type Column = 'at' | 'action' | 'outcome' | 'classification' | 'actor' | 'target';

const columns = [
  ['at', t('Time')],
  ['action', t('Action')],
  ['outcome', t('Outcome')],
  ['classification', t('Class')],
  ['actor', t('Actor')],
  ['target', t('Target')],
] as const satisfies readonly (readonly [Column, string])[];

const outcomeTones: Readonly<Record<string, Tone>> = { success: 'good', failure: 'bad', denied: 'warn' };
const valueOf = (row: AuditRecord, column: Column) => row[column] ?? null;

/** A page of records, newest first; sorting orders the rows of this page. */
export function AuditTable({ rows }: { readonly rows: readonly AuditRecord[] }) {
  const sorting = useSorting(rows, valueOf, { initial: { by: 'at', descending: true }, descendingFirst: (column) => column === 'at' });
  const [open, setOpen] = useState<string>();
  return (
    <div className="table-scroll panel" tabIndex={0} role="region" aria-label={t('Records')}>
      <table className="audit-table">
        <thead>
          <tr>
            {columns.map(([column, title]) => (
              <SortHeading key={column} sorting={sorting} by={column}>
                {title}
              </SortHeading>
            ))}
          </tr>
        </thead>
        <tbody>
          {sorting.rows.map((row) => (
            <Fragment key={row.id}>
              <tr className="audit-entry">
                <td>
                  <time dateTime={new Date(row.at).toISOString()} title={dateTime(row.at)}>
                    {ago(row.at)}
                  </time>
                </td>
                <td>
                  <button
                    type="button"
                    className="link-button mono"
                    aria-expanded={open === row.id}
                    onClick={() => setOpen(open === row.id ? undefined : row.id)}
                  >
                    {row.action}
                  </button>
                </td>
                <td>
                  <Badge tone={outcomeTones[row.outcome] ?? 'neutral'}>{row.outcome}</Badge>
                </td>
                <td>{row.classification}</td>
                <td className="mono">{row.actor}</td>
                <td className="mono">{row.target !== undefined && <ObjectLink id={row.target} />}</td>
              </tr>
              {open === row.id && (
                <tr>
                  <td colSpan={columns.length}>
                    <Details row={row} />
                  </td>
                </tr>
              )}
            </Fragment>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Details({ row: { id, at, kind, severity, refs } }: { readonly row: AuditRecord }) {
  const { traceId, conversationRef } = refs;
  return (
    <div className="audit-details">
      <dl className="facts">
        <dt>{t('Recorded')}</dt>
        <dd>{dateTime(at)}</dd>
        <dt>{t('Kind')}</dt>
        <dd>{[kind, severity].join(', ')}</dd>
        <dt>{t('Id')}</dt>
        <dd className="mono">{id}</dd>
      </dl>
      <p className="feed-links">
        {typeof conversationRef === 'string' && <PageLink to={`/conversations/${conversationRef}`}>{t('Open conversation')}</PageLink>}
        {typeof traceId === 'string' && <PageLink to={`/traces/${encodeURIComponent(traceId)}`}>{t('Open trace')}</PageLink>}
      </p>
      <JsonTree value={refs} name="refs" />
    </div>
  );
}
