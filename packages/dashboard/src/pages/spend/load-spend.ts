import { t } from '../../language.ts';
import type { BatchOutcome, Client } from '@gatehouse/client';
import type { ParamsInput, Result } from '@gatehouse/contract';
import { count, money, shortCount } from '../../data/format.ts';
import { type Column, maxSeries } from '../../ui/charts/column-chart.tsx';
import { dayLabel, daysOf, type Period } from './windows.ts';

export type Usage = Result<'usage.report'>;
export type UsageRow = Usage['rows'][number];
type Sums = Usage['totals'];

/** Formats axis values with all digits, which `money` would round to cents. */
const dollarAxis = { format: (value: number) => `$${Number(value.toPrecision(3))}`, leastStep: 0 };
export const measures = [
  { id: 'cost', name: t('Cost'), valueOf: (sums: Sums) => sums.costUsd ?? 0, format: money, axis: dollarAxis },
  { id: 'tokens', name: t('Tokens'), valueOf: (sums: Sums) => sums.inputTokens + sums.outputTokens, format: shortCount, axis: undefined },
  { id: 'calls', name: t('Calls'), valueOf: (sums: Sums) => sums.calls, format: count, axis: undefined },
] as const;
export type Measure = (typeof measures)[number]['id'];

/** Breakdowns of spend, each in its own table. */
export const dimensions = [
  { id: 'agent', name: t('By agent') },
  { id: 'model', name: t('By model') },
  { id: 'operation', name: t('By operation') },
  { id: 'conversation', name: t('By conversation') },
] as const;
export type Dimension = (typeof dimensions)[number]['id'];

export interface Spend {
  readonly period: Period;
  readonly totals: Usage['totals'];
  readonly byDayAndModel: Usage;
  readonly byDayAndAgent: Usage;
  readonly by: Readonly<Record<Dimension, Usage>>;
}

const tableRows = 200;

/** Loads everything in one request; rows are sorted by cost, days by date. */
export async function loadSpend(client: Client, about: Period & { readonly agentId: string | undefined }, signal: AbortSignal): Promise<Spend> {
  const { sinceMs, untilMs, agentId } = about;
  const common = { sinceMs, untilMs, timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone, agentId };
  const ask = (part: Pick<ParamsInput<'usage.report'>, 'groupBy' | 'limit'>) => ({ method: 'usage.report', params: { ...common, ...part } }) as const;
  const [dayModel, dayAgent, agent, model, operation, conversation] = await client.batch(
    [
      ask({ groupBy: ['day', 'model'], limit: 1000 }),
      ask({ groupBy: ['day', 'agent'], limit: 1000 }),
      ask({ groupBy: ['agent'], limit: tableRows }),
      ask({ groupBy: ['model'], limit: tableRows }),
      ask({ groupBy: ['operation'], limit: tableRows }),
      ask({ groupBy: ['conversation'], limit: tableRows }),
    ],
    { signal },
  );
  const byDayAndModel = resultOf(dayModel);
  return {
    period: { sinceMs, untilMs },
    totals: byDayAndModel.totals,
    byDayAndModel,
    byDayAndAgent: resultOf(dayAgent),
    by: { agent: resultOf(agent), model: resultOf(model), operation: resultOf(operation), conversation: resultOf(conversation) },
  };
}

function resultOf(outcome: BatchOutcome<'usage.report'>): Usage {
  if (!outcome.ok) throw outcome.error;
  return outcome.result;
}

/** Returns a column for each day of the window and a series for each of the largest agents or models; the rest is one series. */
export function stackDays(
  { period, byDayAndModel, byDayAndAgent }: Pick<Spend, 'period' | 'byDayAndModel' | 'byDayAndAgent'>,
  splitBy: 'agent' | 'model',
  valueOf: (row: UsageRow) => number,
): { readonly series: readonly string[]; readonly columns: readonly Column[] } {
  const rows = (splitBy === 'agent' ? byDayAndAgent : byDayAndModel).rows.map((row) => ({
    day: row.keys[0] ?? '',
    name: row.keys[1] ?? 'unknown',
    value: valueOf(row),
  }));
  const sums = new Map<string, number>();
  for (const { name, value } of rows) sums.set(name, (sums.get(name) ?? 0) + value);
  const names = [...sums].toSorted(([, a], [, b]) => b - a).map(([name]) => name);
  const isWhole = names.length <= maxSeries;
  const shown = isWhole ? names : names.slice(0, maxSeries - 1);
  const series = isWhole ? shown : [...shown, 'others'];
  const columns = daysOf(period).map((day): Column => {
    const values = series.map(() => 0);
    for (const row of rows) {
      if (row.day !== day) continue;
      const at = shown.indexOf(row.name);
      const index = at === -1 ? series.length - 1 : at;
      values[index] = (values[index] ?? 0) + row.value;
    }
    return { key: day, label: dayLabel(day, 'short'), name: dayLabel(day, 'long'), values };
  });
  return { series, columns };
}
