import { allows, type ResultInput } from '@gatehouse/contract';
import { AppError } from '../../../kernel/app-error.ts';
import { type CallContext, ownerOf } from '../../../kernel/call-context.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { HandlersOf } from '../../../kernel/handlers.ts';
import type { Agent, AgentsApi } from '../../agents/agents/api.ts';
import { daysOf } from './usage/days.ts';
import { type CapStatus, type Ledger, warnAt } from './limits/ledger.ts';
import { usageReport, type UsageSums } from './store.ts';

const dayMs = 86_400_000;

/** Handlers of `capabilities.introspect` (json-rpc.md §4) and `usage.report`. */
export function createBudgetMethods(deps: {
  readonly db: Db;
  readonly clock: Clock;
  readonly ledger: Ledger;
  readonly agents: AgentsApi;
  /** What the caller may start, and what is left of its quotas. */
  readonly autonomyOf: (agent: Agent, call: CallContext) => ResultInput<'capabilities.introspect'>['autonomy'];
  /** Running and queued turns of one agent. */
  readonly turnsOf: (agentId: string) => { readonly running: number; readonly queued: number };
}): HandlersOf<'capabilities.introspect' | 'usage.report'> {
  return {
    'capabilities.introspect': async ({ agentId }, call) => {
      const agent = agentFor(deps.agents, agentId, call);
      return {
        agentId: agent.id,
        enabled: !agent.suspended,
        budgets: deps.ledger.status(agent.id, ownerOf(call)).map(shown),
        concurrency: { ...deps.turnsOf(agent.id), max: agent.config.maxConcurrentRuns },
        autonomy: deps.autonomyOf(agent, call),
        timestamp: deps.clock.now(),
      };
    },

    'usage.report': async ({ sinceMs, untilMs, timeZone, groupBy, agentId, limit }, call) => {
      // Includes calls made in this millisecond.
      const toMs = untilMs ?? deps.clock.now() + 1;
      const fromMs = sinceMs ?? Math.max(0, toMs - 30 * dayMs);
      if (fromMs >= toMs) throw new AppError('invalid_params', 'sinceMs: expected a time before untilMs', { param: 'sinceMs' });
      if (toMs - fromMs > 366 * dayMs)
        throw new AppError('invalid_params', 'sinceMs: expected at most 366 days before untilMs', { param: 'sinceMs' });
      const zone = timeZone ?? Temporal.Now.timeZoneId();
      const { rows, groups, totals } = await deps.db.read(usageReport, {
        ranges: groupBy.includes('day') ? daysOf(fromMs, toMs, zone) : [{ name: '', fromMs, toMs }],
        groupBy,
        principalId: principalOf(call),
        agentIds: agentsFor(agentId, call),
        limit,
      });
      return {
        sinceMs: fromMs,
        untilMs: toMs,
        timeZone: zone,
        rows: rows.map(({ key1, key2, ...row }) => ({ keys: groupBy.length === 1 ? [key1] : [key1, key2], ...money(row) })),
        totals: money(totals),
        truncated: groups > rows.length,
      };
    },
  };
}

/** Principal whose usage the caller may see; null: all. An agent never sees more than its own principal's. */
function principalOf({ identity, agentCaller }: CallContext): string | null {
  if (agentCaller !== undefined) return agentCaller.principalId;
  return allows(identity.scopes, 'admin') ? null : identity.principalId;
}

/** The only agents that the caller may introspect; all when undefined. An agent sees itself. */
function boundTo({ identity, agentCaller }: CallContext): readonly string[] | undefined {
  if (agentCaller === undefined) return identity.agents;
  return identity.agents?.includes(agentCaller.agentId) === false ? [] : [agentCaller.agentId];
}

function agentsFor(asked: string | undefined, call: CallContext): readonly string[] | null {
  const bound = boundTo(call);
  if (asked === undefined) return bound ?? null;
  if (bound?.includes(asked) === false) throw new AppError('not_found', `Agent not found: ${asked}`, { param: 'agentId' });
  return [asked];
}

/** Returns the calling agent; for others the agent they name or, without a name, the default one of those they may use. */
function agentFor(agents: AgentsApi, asked: string | undefined, call: CallContext): Agent {
  const bound = boundTo(call);
  const agentId = asked ?? (bound === undefined || bound.includes(agents.defaultId) ? agents.defaultId : (bound[0] ?? agents.defaultId));
  const agent = bound?.includes(agentId) === false ? undefined : agents.find(agentId);
  if (agent === undefined) throw new AppError('not_found', `Agent not found: ${agentId}`, { param: 'agentId' });
  return agent;
}

function shown({ cap, scope, used, held, freesInMs }: CapStatus): ResultInput<'capabilities.introspect'>['budgets'][number] {
  const scale = cap.unit === 'nano' ? 1e9 : 1;
  return {
    cap: cap.key,
    scope,
    window: cap.window,
    unit: cap.unit === 'nano' ? 'usd' : 'tokens',
    limit: cap.limit / scale,
    used: used / scale,
    reserved: held / scale,
    remaining: Math.max(0, cap.limit - used - held) / scale,
    warnAt: (cap.limit * warnAt) / scale,
    resetsInMs: freesInMs ?? null,
  };
}

function money({ costNano, savedNano, ...sums }: UsageSums) {
  return { ...sums, costUsd: sums.calls > 0 && sums.unpriced === sums.calls ? null : costNano / 1e9, savedUsd: savedNano / 1e9 };
}
