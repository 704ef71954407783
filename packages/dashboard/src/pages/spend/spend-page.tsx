import { useMemo, useState } from 'react';
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
      title="Spend"
      lead={admin ? 'Model costs of all users.' : 'Model costs of your conversations.'}
      actions={
        <Button icon="retry" onClick={spend.reload} disabled={spend.loading}>
          Refresh
        </Button>
      }
    >
      <div className="toolbar">
        <fieldset className="chips">
          <legend className="visually-hidden">Window</legend>
          {windows.map((one) => (
            <button key={one.days} type="button" className="chip" aria-pressed={one.days === days} onClick={() => setDays(one.days)}>
              {one.text}
            </button>
          ))}
        </fieldset>
        <fieldset className="chips">
          <legend className="visually-hidden">Measure</legend>
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
  const { series, columns } = useMemo(() => stackDays(spend, splitBy, valueOf), [spend, splitBy, valueOf]);
  if (totals.calls === 0) return <Empty title="No model calls in this period" />;
  return (
    <>
      <ul className="tiles">
        <Tile name="Cost" value={money(totals.costUsd ?? 0)} more={totals.unpriced > 0 ? 'priced calls only' : undefined} />
        <Tile
          name="Tokens"
          value={shortCount(totals.inputTokens + totals.outputTokens)}
          more={`${shortCount(totals.inputTokens)} in, ${shortCount(totals.outputTokens)} out`}
        />
        <Tile name="Model calls" value={count(totals.calls)} />
        <Tile
          name="Cached input"
          value={totals.inputTokens === 0 ? '–' : percent(totals.cacheReadTokens / totals.inputTokens)}
          more={`${money(totals.savedUsd)} saved`}
        />
      </ul>
      {totals.unpriced > 0 && (
        <Notice tone="warn">
          {plural(totals.unpriced, 'call')} without a known price: their tokens are included in these totals, their cost is not.
        </Notice>
      )}
      <section className="panel" aria-label="By day">
        <div className="panel-head">
          <h2>By day</h2>
          <span className="grow" />
          <label className="inline-field">
            Split by{' '}
            <select value={splitBy} onChange={({ target: { value } }) => setSplitBy(value === 'agent' ? 'agent' : 'model')}>
              <option value="model">model</option>
              <option value="agent">agent</option>
            </select>
          </label>
        </div>
        <ColumnChart caption={`${name} by day`} series={series} columns={columns} format={format} {...(axis !== undefined && { axis })} />
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
