import type { ResultInput } from '@gatehouse/contract';
import type { Live } from '../../../../kernel/config/live.ts';
import type { CallContext } from '../../../../kernel/call-context.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import type { HandlersOf } from '../../../../kernel/handlers.ts';
import type { UsageAnswer, UsageQuery, UsageSums } from '../../../access/budgets/api.ts';
import type { AgentsApi } from '../../../agents/agents/api.ts';
import { agentsFor, refuseAgents } from './access.ts';
import { hoursOf } from './hours.ts';
import { conversationsOfKey } from './store.ts';

const hourMs = 3_600_000;
/** Calls of synthetic turns are charged to it. */
const syntheticOperation = 'evaluation';
/** Groups of one report: more than an installation has models. */
const maxGroups = 10_000;

export interface BillingDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly agents: Pick<AgentsApi, 'find'>;
  readonly usage: (query: UsageQuery) => Promise<UsageAnswer>;
  /** Time zone of the hours of a day. */
  readonly zone: Live<string>;
  /** Returns the first moment of a window that begins so long ago, not before the last reset. */
  readonly since: (agoMs: number | undefined) => Promise<number>;
}

type BillingMethods =
  | 'obs.billing.total'
  | 'obs.billing.usage24h'
  | 'obs.billing.byProvider'
  | 'obs.billing.byAgent'
  | 'obs.billing.bySession'
  | 'obs.getCacheStats';

interface Window {
  readonly sinceMs?: number | undefined;
  readonly includeSynthetic: boolean;
}

/** Handlers of `obs.billing.*` and `obs.getCacheStats`: views on the sums of `usage.report`. */
export function createBilling(deps: BillingDeps): HandlersOf<BillingMethods> {
  const { db, clock, agents, usage } = deps;

  async function report(window: Window, about: Partial<UsageQuery>): Promise<UsageAnswer> {
    const fromMs = await deps.since(window.sinceMs);
    // Includes calls made in this millisecond.
    const ranges = about.ranges ?? [{ name: '', fromMs, toMs: Math.max(fromMs, clock.now() + 1) }];
    return usage({
      groupBy: ['provider'],
      principalId: null,
      agentIds: null,
      limit: maxGroups,
      ...about,
      ranges: ranges.map((range) => ({ ...range, fromMs: Math.max(range.fromMs, fromMs), toMs: Math.max(range.toMs, fromMs) })),
      exceptOperations: window.includeSynthetic ? [] : [syntheticOperation],
    });
  }

  const totalsOf = async (window: Window, about: Partial<UsageQuery>) => snapshotOf((await report(window, about)).totals);

  /** Tokens of an agent in the last hour or day, as its budgets count them. */
  async function usedIn(agentId: string, ms: number): Promise<number> {
    const nowMs = clock.now();
    const ranges = [{ name: '', fromMs: nowMs - ms, toMs: nowMs + 1 }];
    return tokensOf((await usage({ ranges, groupBy: ['provider'], principalId: null, agentIds: [agentId], limit: 1 })).totals);
  }

  async function budgetUsed(agentId: string) {
    const budgets = agents.find(agentId)?.config.budgets;
    if (budgets === undefined) return {};
    const [hour, day] = await Promise.all([usedIn(agentId, hourMs), usedIn(agentId, 24 * hourMs)]);
    const limited = (used: number, limit: number | undefined) => ({ used, ...(limit !== undefined && { limit }) });
    const perExecution = { limit: budgets.perTurnTokens };
    return { budgetUsed: { perExecution, perHour: limited(hour, budgets.perHourTokens), perDay: limited(day, budgets.perDayTokens) } };
  }

  return {
    'obs.billing.total': async (window, call) => totalsOf(window, everywhere(call)),
    'obs.billing.usage24h': async (params, call) => {
      const ranges = hoursOf(clock.now(), deps.zone.current);
      const { rows } = await report(params, { ...everywhere(call), ranges, groupBy: ['day'] });
      const tokens = new Map(rows.map((row) => [Number(row.key1), tokensOf(row)]));
      return Array.from({ length: 24 }, (_, hour) => ({ hour, tokens: tokens.get(hour) ?? 0 }));
    },
    'obs.billing.byProvider': async (window, call) => ({
      providers: byProvider((await report(window, { ...everywhere(call), groupBy: ['provider', 'model'] })).rows),
    }),
    'obs.billing.byAgent': async ({ agentId, ...window }, call) => {
      refuseAgents(call);
      const agentIds = agentsFor(agentId, call);
      const [totals, budget] = await Promise.all([totalsOf(window, { agentIds }), budgetUsed(agentId)]);
      return { ...totals, ...budget };
    },
    'obs.billing.bySession': async ({ sessionKey, conversationRef, ...window }, call) => {
      const ofKey = sessionKey === undefined ? undefined : await db.search(conversationsOfKey, { sessionKey });
      const refs = conversationRef === undefined ? (ofKey ?? []) : [conversationRef].filter((ref) => ofKey?.includes(ref) !== false);
      return totalsOf(window, { ...everywhere(call), conversationRefs: refs });
    },
    'obs.getCacheStats': async (window, call) => {
      const { inputTokens, cacheReadTokens: read, cacheWriteTokens: written } = (await report(window, everywhere(call))).totals;
      return { cacheHitRate: share(read, inputTokens), cacheEffectiveness: share(read, read + written) };
    },
  };
}

function everywhere(call: CallContext): Pick<UsageQuery, 'agentIds'> {
  refuseAgents(call);
  return { agentIds: agentsFor(undefined, call) };
}

const tokensOf = ({ inputTokens, outputTokens }: UsageSums): number => inputTokens + outputTokens;

/** Providers may report more cached tokens than input. */
const share = (part: number, whole: number): number => (whole === 0 ? 0 : Math.min(1, part / whole));

function snapshotOf(sums: UsageSums) {
  return {
    totalCost: sums.costNano / 1e9,
    totalTokens: tokensOf(sums),
    callCount: sums.calls,
    totalCacheSaved: sums.savedNano / 1e9,
    unpriced: sums.unpriced,
  };
}

type Providers = ResultInput<'obs.billing.byProvider'>['providers'];

/** Adds up the models of each provider: whole units, so that sums are exact. */
function byProvider(rows: UsageAnswer['rows']): Providers {
  const sums = new Map<string, { -readonly [Key in keyof UsageSums]: number } & { readonly models: Providers[number]['models'] }>();
  for (const row of rows) {
    const provider = row.key1 ?? '';
    const of = sums.get(provider) ?? { ...none, models: [] };
    sums.set(provider, of);
    for (const key of Object.keys(none) as (keyof UsageSums)[]) of[key] += row[key];
    of.models.push({ model: (row.key2 ?? '').slice(provider.length + 1), cost: row.costNano / 1e9, tokens: tokensOf(row), calls: row.calls });
  }
  return [...sums]
    .toSorted(([, a], [, b]) => b.costNano - a.costNano || tokensOf(b) - tokensOf(a))
    .map(([provider, { models, ...of }]) => ({ provider, ...snapshotOf(of), models }));
}

const none: UsageSums = {
  calls: 0,
  inputTokens: 0,
  outputTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  costNano: 0,
  savedNano: 0,
  unpriced: 0,
};
