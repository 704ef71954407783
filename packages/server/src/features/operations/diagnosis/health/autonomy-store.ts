import { query, type Tx } from '../../../../kernel/db/operation.ts';
import type { AutonomyCounts } from './facts.ts';

interface RootSums {
  readonly total: number | null;
  readonly degraded: number | null;
  readonly revoked: number | null;
  readonly costNano: number | null;
}

type Range = { readonly fromMs: number; readonly untilMs: number };

const rootSums = query<Range, RootSums>(({ db, sql, p }) =>
  db
    .selectFrom('rootRun')
    .select([
      sql<number | null>`count(*)`.as('total'),
      sql<number | null>`sum(case when state in ('failed', 'revoked') then 1 else 0 end)`.as('degraded'),
      sql<number | null>`sum(case when state = 'revoked' then 1 else 0 end)`.as('revoked'),
      sql<number | null>`sum(spent_nano)`.as('costNano'),
    ])
    .where('startedAtMs', '>=', p('fromMs'))
    .where('startedAtMs', '<', p('untilMs')),
);

const worst = query<Range, { id: string }>(({ db, p }) =>
  db
    .selectFrom('rootRun')
    .select('id')
    .where('startedAtMs', '>=', p('fromMs'))
    .where('startedAtMs', '<', p('untilMs'))
    .where('state', 'in', ['failed', 'revoked'])
    .orderBy('spentNano', 'desc')
    .orderBy('id')
    .limit(1),
);

/** Reads root runs of a window; undefined when there were none. `events`: records `autonomy` by their event. */
export async function readAutonomy(
  tx: Tx,
  window: Range,
  events: ReadonlyMap<string, number>,
  breakerTrips: number,
): Promise<AutonomyCounts | undefined> {
  const range = { fromMs: window.fromMs, untilMs: window.untilMs };
  const sums = await tx.get(rootSums, range);
  const total = sums?.total ?? 0;
  const counted = (event: string) => events.get(event) ?? 0;
  const denials = counted('denial_breaker') === 0 ? counted('denial_breaker_turn') : counted('denial_breaker');
  if (total === 0 && events.size === 0) return undefined;
  return {
    total,
    degraded: sums?.degraded ?? 0,
    orphaned: counted('orphaned'),
    resumed: counted('resumed'),
    revoked: counted('revoked'),
    killed: counted('killed'),
    breakerTrips,
    denialBreakerTrips: denials,
    budgetBreaches: counted('budget_breach'),
    costNano: total === 0 ? null : (sums?.costNano ?? null),
    worstRootRunId: (await tx.get(worst, range))?.id,
  };
}
