import { t, tx } from '../../language.ts';
import type { Client } from '@gatehouse/client';
import type { ParamsInput } from '@gatehouse/contract';
import { useState } from 'react';
import { useSession } from '../../data/context.ts';
import { count } from '../../data/format.ts';
import { saveCsv } from '../../ui/csv.ts';
import { Button, Failure, Notice } from '../../ui/parts.tsx';
import type { AuditRecord } from './audit-table.tsx';

type Query = ParamsInput<'obs.audit.query'>;
const pageSize = 1000;
const maxRows = 20_000;

/** Downloads all records that match, not only those of the page. */
export function AuditExport({ query }: { readonly query: Query }) {
  const { client } = useSession();
  const [isLoading, setLoading] = useState(false);
  const [error, setError] = useState<unknown>();
  const [isCut, setCut] = useState(false);
  async function run(): Promise<void> {
    setLoading(true);
    setError(undefined);
    try {
      const { rows, hasMore } = await loadAll(client, query);
      saveCsv('audit.csv', [
        [t('Time'), t('Action'), t('Outcome'), t('Class'), t('Kind'), t('Severity'), t('Actor'), t('Target'), t('Id'), t('Refs')],
        ...rows.map((row) => [
          new Date(row.at).toISOString(),
          row.action,
          row.outcome,
          row.classification,
          row.kind,
          row.severity,
          row.actor,
          row.target,
          row.id,
          JSON.stringify(row.refs),
        ]),
      ]);
      setCut(hasMore);
    } catch (failure) {
      setError(failure);
    } finally {
      setLoading(false);
    }
  }
  return (
    <>
      <Button icon="download" disabled={isLoading} onClick={() => void run()}>
        {isLoading ? t('Exporting…') : t('Export CSV')}
      </Button>
      {error !== undefined && <Failure error={error} />}
      {isCut && (
        <Notice tone="warn">
          {tx('The file has the newest {maxRows} records. Narrow the filters for older ones.', { maxRows: count(maxRows) })}
        </Notice>
      )}
    </>
  );
}

async function loadAll(client: Client, query: Query): Promise<{ readonly rows: readonly AuditRecord[]; readonly hasMore: boolean }> {
  const rows: AuditRecord[] = [];
  for (;;) {
    const page = await client.call('obs.audit.query', { ...query, limit: pageSize, before: rows.at(-1)?.id });
    rows.push(...page.rows);
    if (!page.hasMore || rows.length >= maxRows) return { rows, hasMore: page.hasMore };
  }
}
