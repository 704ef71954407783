import { t, tx } from '../../language.ts';
import { useState } from 'react';
import { useSession } from '../../data/context.ts';
import { count, money, percent, plural, shortCount } from '../../data/format.ts';
import { useLoad } from '../../data/use-load.ts';
import { AgentFilter } from '../../ui/agent-filter.tsx';
import { ColumnChart } from '../../ui/charts/column-chart.tsx';
import { Button, Empty, Failure, Notice, Page, Skeleton } from '../../ui/parts.tsx';
import { BudgetMeters } from './budget-meters.tsx';
import { dimensions, loadSpend, type Measure, measures, type Spend, stackDays } from './load-spend.ts';
import { SpendTable } from './spend-table.tsx';
import { periodOf, windows } from './windows.ts';

/** Shows spend by day, agent, model and conversation, and the use of budgets. */
export function SpendPage() {
  const { client, admin } = useSession();
  const [days, setDays] = useState<number>(7);
  const [agentId, setAgentId] = useState<string>();
  const [measure, setMeasure] = useState<Measure>('cost');
  const spend = useLoad(['usage.report', agentId, days], (signal) => loadSpend(client, { ...periodOf(days, Date.now()), agentId }, signal), {
    keepsPrevious: () => true,
  });
  return (
    <Page
      title={t('Spend')}
      lead={admin ? t('Model costs of all users.') : t('Model costs of your conversations.')}
      actions={
        <Button icon="retry" onClick={spend.reload} disabled={spend.loading}>
          {t('Refresh')}
        </Button>
      }
    >
      <div className="toolbar">
        <fieldset className="chips">
          <legend className="visually-hidden">{t('Window')}</legend>
          {windows.map((one) => (
            <button key={one.days} type="button" className="chip" aria-pressed={one.days === days} onClick={() => setDays(one.days)}>
              {one.text}
            </button>
          ))}
        </fieldset>
        <fieldset className="chips">
          <legend className="visually-hidden">{t('Measure')}</legend>
          {measures.map(({ id, name }) => (
            <button key={id} type="button" className="chip" aria-pressed={id === measure} onClick={() => setMeasure(id)}>
              {name}
            </button>
          ))}
        </fieldset>
        <AgentFilter value={agentId} onChange={setAgentId} />
      </div>
      {spend.error !== undefined && <Failure error={spend.error} onRetry={spend.reload} />}
      {spend.data === undefined && spend.loading && <Skeleton lines={8} />}
      {spend.data !== undefined && spend.error === undefined && <Report spend={spend.data} measure={measure} />}
      {spend.error === undefined && <BudgetMeters agentId={agentId} />}
    </Page>
  );
}

function Report({ spend, measure }: { readonly spend: Spend; readonly measure: Measure }) {
  const { totals } = spend;
  const { name, valueOf, format, axis } = measures.find(({ id }) => id === measure) ?? measures[0];
  const [splitBy, setSplitBy] = useState<'agent' | 'model'>('model');
  const { series, columns } = stackDays(spend, splitBy, valueOf);
  if (totals.calls === 0) return <Empty title={t('No model calls in this period')} />;
  return (
    <>
      <ul className="tiles">
        <Tile name={t('Cost')} value={money(totals.costUsd ?? 0)} more={totals.unpriced > 0 ? t('priced calls only') : undefined} />
        <Tile
          name={t('Tokens')}
          value={shortCount(totals.inputTokens + totals.outputTokens)}
          more={t('{inputTokens} in, {outputTokens} out', {
            inputTokens: shortCount(totals.inputTokens),
            outputTokens: shortCount(totals.outputTokens),
          })}
        />
        <Tile name={t('Model calls')} value={count(totals.calls)} />
        <Tile
          name={t('Cached input')}
          value={totals.inputTokens === 0 ? '–' : percent(totals.cacheReadTokens / totals.inputTokens)}
          more={t('{savedUsd} saved', { savedUsd: money(totals.savedUsd) })}
        />
      </ul>
      {totals.unpriced > 0 && (
        <Notice tone="warn">
          {tx('{calls} without a known price: their tokens are included in these totals, their cost is not.', {
            calls: plural(totals.unpriced, 'call'),
          })}
        </Notice>
      )}
      <section className="panel" aria-label={t('By day')}>
        <div className="panel-head">
          <h2>{t('By day')}</h2>
          <span className="grow" />
          <label className="inline-field">
            {tx('Split by {select}', {
              select: (
                <select value={splitBy} onChange={({ target: { value } }) => setSplitBy(value === 'agent' ? 'agent' : 'model')}>
                  <option value="model">{t('model')}</option>
                  <option value="agent">{t('agent')}</option>
                </select>
              ),
            })}
          </label>
        </div>
        <ColumnChart caption={t('{name} by day', { name })} series={series} columns={columns} format={format} {...(axis !== undefined && { axis })} />
      </section>
      <div className="pair">
        {dimensions.map(({ id, name }) => (
          <SpendTable key={`${id} ${measure}`} dimension={id} name={name} report={spend.by[id]} measure={measure} />
        ))}
      </div>
    </>
  );
}

function Tile({ name, value, more }: { readonly name: string; readonly value: string; readonly more?: string | undefined }) {
  return (
    <li className="tile">
      <span className="hint">{name}</span>
      <strong>{value}</strong>
      {more !== undefined && <span className="hint">{more}</span>}
    </li>
  );
}
