import type { Result } from '@gatehouse/contract';
import { useSession } from '../../data/context.ts';
import { count, duration, money, plural, shortCount } from '../../data/format.ts';
import { useLoad } from '../../data/use-load.ts';
import { Meter } from '../../ui/charts/meter.tsx';
import { Failure } from '../../ui/parts.tsx';

type Budget = Result<'capabilities.introspect'>['budgets'][number];

const scopeLabels: Record<Budget['scope'], string> = {
  agent: 'This agent',
  person: 'You, with all your tokens',
  token: 'This token',
  all: 'All agents',
};

const windowLabels = { turn: 'each turn', hour: 'the last hour', day: 'the last 24 hours' } as const;

/** Shows the current use of an agent's budgets. */
export function BudgetMeters({ agentId }: { readonly agentId: string | undefined }) {
  const { client } = useSession();
  const caps = useLoad(['capabilities.introspect', agentId], (signal) => client.call('capabilities.introspect', { agentId }, { signal }));
  const { data } = caps;
  if (caps.error !== undefined) return <Failure error={caps.error} onRetry={caps.reload} />;
  if (data === undefined) return null;
  const perTurn = data.budgets.filter(({ window }) => window === 'turn');
  const rolling = data.budgets.filter(({ window }) => window !== 'turn');
  return (
    <section className="panel" aria-label="Budgets">
      <h2>Budgets of {data.agentId}</h2>
      {data.budgets.length === 0 && (
        <p className="hint">
          No budgets: spending is unlimited. Set them under <code>agents.{data.agentId}.budgets</code> or, for all agents together, under{' '}
          <code>budgets</code>.
        </p>
      )}
      {rolling.length > 0 && (
        <div className="meters">
          {rolling.map((budget) => (
            <Meter
              key={`${budget.scope} ${budget.cap}`}
              label={labelOf(budget)}
              used={budget.used}
              reserved={budget.reserved}
              limit={budget.limit}
              warnAt={budget.limit === 0 ? 1 : budget.warnAt / budget.limit}
              text={usageText(budget)}
            />
          ))}
        </div>
      )}
      {perTurn.length > 0 && (
        <p className="hint">
          {perTurn.map((budget) => `${budget.scope === 'all' ? 'All agents, each' : 'Each'} turn: up to ${amount(budget, budget.limit)}`).join('. ')}.
        </p>
      )}
      <p className="hint">
        {plural(data.concurrency.running, 'turn')} running, {count(data.concurrency.queued)} queued, up to {count(data.concurrency.max)} at once.
      </p>
    </section>
  );
}

function labelOf({ scope, window, unit }: Budget): string {
  return `${scopeLabels[scope]}, ${windowLabels[window]}, ${unit === 'usd' ? 'money' : 'tokens'}`;
}

function usageText(budget: Budget): string {
  const { used, reserved, limit, resetsInMs } = budget;
  return [
    `${amount(budget, used)} of ${amount(budget, limit)} used`,
    ...(reserved > 0 ? [`${amount(budget, reserved)} reserved`] : []),
    ...(used + reserved >= limit && resetsInMs !== null ? [`available again in ${duration(Math.ceil(resetsInMs / 1000))}`] : []),
  ].join(', ');
}

function amount({ unit }: Budget, value: number): string {
  return unit === 'usd' ? money(value) : `${shortCount(value)} tokens`;
}
