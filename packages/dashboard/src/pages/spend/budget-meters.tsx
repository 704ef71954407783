import { t, tx } from '../../language.ts';
import type { Result } from '@gatehouse/contract';
import { useSession } from '../../data/context.ts';
import { count, duration, money, plural, shortCount } from '../../data/format.ts';
import { useLoad } from '../../data/use-load.ts';
import { Meter } from '../../ui/charts/meter.tsx';
import { Failure } from '../../ui/parts.tsx';

type Budget = Result<'capabilities.introspect'>['budgets'][number];

const scopeLabels: Record<Budget['scope'], string> = {
  agent: t('This agent'),
  person: t('You, with all your tokens'),
  token: t('This token'),
  all: t('All agents'),
};

const windowLabels = { turn: t('each turn'), hour: t('the last hour'), day: t('the last 24 hours') } as const;

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
    <section className="panel" aria-label={t('Budgets')}>
      <h2>{tx('Budgets of {agentId}', { agentId: data.agentId })}</h2>
      {data.budgets.length === 0 && (
        <p className="hint">
          {tx('No budgets: spending is unlimited. Set them under {code} or, for all agents together, under {code2}.', {
            code: <code>agents.{data.agentId}.budgets</code>,
            code2: <code>budgets</code>,
          })}
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
          {perTurn
            .map((budget) =>
              t('{scope} turn: up to {budget}', {
                scope: budget.scope === 'all' ? t('All agents, each') : t('Each'),
                budget: amount(budget, budget.limit),
              }),
            )
            .join('. ')}
          .
        </p>
      )}
      <p className="hint">
        {tx('{turns} running, {queued} queued, up to {max} at once.', {
          turns: plural(data.concurrency.running, 'turn'),
          queued: count(data.concurrency.queued),
          max: count(data.concurrency.max),
        })}
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
    t('{budget} of {budget2} used', { budget: amount(budget, used), budget2: amount(budget, limit) }),
    ...(reserved > 0 ? [t('{budget} reserved', { budget: amount(budget, reserved) })] : []),
    ...(used + reserved >= limit && resetsInMs !== null
      ? [t('available again in {resetsIn}', { resetsIn: duration(Math.ceil(resetsInMs / 1000)) })]
      : []),
  ].join(', ');
}

function amount({ unit }: Budget, value: number): string {
  return unit === 'usd' ? money(value) : t('{value} tokens', { value: shortCount(value) });
}
