import { t } from '../../language.ts';
import type { ParamsInput } from '@gatehouse/contract';
import { useState } from 'react';
import { useSession } from '../../data/context.ts';
import { plural } from '../../data/format.ts';
import { useLoad } from '../../data/use-load.ts';
import { AdminOnly, Button, Empty, Failure, Field, Page, Skeleton } from '../../ui/parts.tsx';
import { AuditExport } from './audit-export.tsx';
import { AuditTable } from './audit-table.tsx';

type Query = ParamsInput<'obs.audit.query'>;

interface Filters {
  readonly actionType: string;
  readonly classification: string;
  readonly outcome: string;
  readonly principalId: string;
  readonly target: string;
  /** Local times in the format of the browser's input. */
  readonly since: string;
  readonly until: string;
}

const noFilters: Filters = { actionType: '', classification: '', outcome: '', principalId: '', target: '', since: '', until: '' };
const classifications = ['read', 'mutate', 'destructive', 'security'] as const;
const outcomes = ['success', 'failure', 'denied'] as const;
const pageSize = 50;

/** Recorded decisions and changes, and who made them. */
export function AuditPage() {
  const { admin } = useSession();
  return admin ? <Records /> : <AdminOnly title={t('Audit')} />;
}

function Records() {
  const { client } = useSession();
  const [filters, setFilters] = useState<Filters>(noFilters);
  /** Cursors of the previous pages. */
  const [trail, setTrail] = useState<readonly string[]>([]);
  const before = trail.at(-1);
  const found = useLoad(['obs.audit.query', filters, before], (signal) =>
    client.call('obs.audit.query', { limit: pageSize, ...toQuery(filters), before }, { signal }),
  );
  const { data } = found;
  return (
    <Page
      title={t('Audit')}
      lead={t('Decisions and changes, and who made them. Each is recorded together with the change, and kept.')}
      actions={<AuditExport query={toQuery(filters)} />}
    >
      <FilterForm
        onShow={(next) => {
          setFilters(next);
          setTrail([]);
          // Otherwise the changed filters load on their own.
          if (before === undefined && JSON.stringify(next) === JSON.stringify(filters)) found.reload();
        }}
      />
      {found.error !== undefined && <Failure error={found.error} onRetry={found.reload} />}
      {data === undefined && found.loading && <Skeleton lines={6} />}
      {data?.rows.length === 0 && <Empty title={t('No records')} />}
      {data !== undefined && (
        <p className="visually-hidden" role="status">
          {plural(data.rows.length, 'record')}
        </p>
      )}
      {data !== undefined && data.rows.length > 0 && <AuditTable rows={data.rows} />}
      {(trail.length > 0 || data?.hasMore === true) && (
        <div className="pages">
          <Button small disabled={trail.length === 0} onClick={() => setTrail(trail.slice(0, -1))}>
            {t('Newer')}
          </Button>
          <Button
            small
            disabled={data?.hasMore !== true}
            onClick={() => {
              const last = data?.rows.at(-1);
              if (last !== undefined) setTrail([...trail, last.id]);
            }}
          >
            {t('Older')}
          </Button>
        </div>
      )}
    </Page>
  );
}

function FilterForm({ onShow }: { readonly onShow: (filters: Filters) => void }) {
  const [draft, setDraft] = useState<Filters>(noFilters);
  const change = (part: Partial<Filters>): void => setDraft({ ...draft, ...part });
  const text = (name: 'actionType' | 'principalId' | 'target', label: string) => (
    <Field label={label}>{(id) => <input id={id} value={draft[name]} onChange={(event) => change({ [name]: event.target.value })} />}</Field>
  );
  const choice = (name: 'classification' | 'outcome', label: string, values: readonly string[]) => (
    <Field label={label}>
      {(id) => (
        <select id={id} value={draft[name]} onChange={(event) => change({ [name]: event.target.value })}>
          <option value="">{t('all')}</option>
          {values.map((one) => (
            <option key={one}>{one}</option>
          ))}
        </select>
      )}
    </Field>
  );
  const time = (name: 'since' | 'until', label: string) => (
    <Field label={label}>
      {(id) => <input id={id} type="datetime-local" value={draft[name]} onChange={(event) => change({ [name]: event.target.value })} />}
    </Field>
  );
  return (
    <form
      className="panel"
      aria-label={t('Filters')}
      onSubmit={(event) => {
        event.preventDefault();
        onShow(draft);
      }}
    >
      <div className="schema-fields">
        {text('actionType', t('Action'))}
        {choice('classification', t('Class'), classifications)}
        {choice('outcome', t('Outcome'), outcomes)}
        {text('principalId', t('Actor'))}
        {text('target', t('Target'))}
        {time('since', t('From'))}
        {time('until', t('Until'))}
      </div>
      <div className="actions">
        <Button submit look="primary">
          {t('Show')}
        </Button>
        <Button
          look="quiet"
          onClick={() => {
            setDraft(noFilters);
            onShow(noFilters);
          }}
        >
          {t('Clear filters')}
        </Button>
      </div>
    </form>
  );
}

function toQuery({ actionType, classification, outcome, principalId, target, since, until }: Filters): Query {
  const kind = classifications.find((one) => one === classification);
  const end = outcomes.find((one) => one === outcome);
  return {
    ...(actionType.trim() !== '' && { actionType: actionType.trim() }),
    classification: kind,
    outcome: end,
    ...(principalId.trim() !== '' && { principalId: principalId.trim() }),
    ...(target.trim() !== '' && { target: target.trim() }),
    ...(since !== '' && { sinceMs: Date.parse(since) }),
    ...(until !== '' && { untilMs: Date.parse(until) }),
  };
}
