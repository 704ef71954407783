import type { Client } from '@gatehouse/client';
import type { Health, Result } from '@gatehouse/contract';
import { useState } from 'react';
import { type Connection, mostChanges } from './connect.ts';
import { useSession } from './context.ts';
import { useStore } from './store.ts';
import { useLoad } from './use-load.ts';

export const stepNames = ['model', 'hello', 'agent', 'client', 'budget'] as const;
export type StepName = (typeof stepNames)[number];

/** How far an installation is set up, as its gateway knows it. */
export interface FirstRun {
  readonly done: ReadonlySet<StepName>;
  /** The model of the default agent; undefined when it is the built-in offline one. */
  readonly model: string | undefined;
  /** Whether a budget in dollars makes sense: it refuses a model whose price is not known, and never stops a free one. */
  readonly isPriced: boolean;
  /** Workspace of the default agent. */
  readonly folder: string;
  readonly budget: Budget | undefined;
}

export interface Budget {
  readonly amount: number;
  readonly unit: 'usd' | 'tokens';
  readonly window: 'day' | 'hour';
  /** Whose calls count: those of all agents together, or of the default one. */
  readonly scope: 'all' | 'agent';
}

const offline = 'offline';
/** How long the navigation offers the checklist after a provider was first connected. */
const offeredMs = 14 * 24 * 3_600_000;
const yearMs = 365 * 24 * 3_600_000;
/** Each call of a batch counts against the rate limit of the token, and one step emits several events. */
const settleMs = 1_500;
const changedBy = ['audit:', 'config:', 'agent:hot', 'message:sent', 'provider'];

export function useFirstRun() {
  const { client, defaultAgentId } = useSession();
  return useLoad(['first run', defaultAgentId], (signal) => loadFirstRun(client, defaultAgentId, signal), { changedBy, settleMs });
}

/**
 * Returns whether the navigation offers the checklist: while only the built-in offline model answers, and for two weeks after a provider
 * was first connected by the dashboard or the command line. An installation that was configured by hand never offers it.
 */
export function useOffersFirstRun(): boolean {
  const { admin, health, providerChanges } = useSession();
  const isEmpty = hasNoModel(useStore(health.state).health);
  // The model may be connected in this session.
  const [wasEmpty, setWasEmpty] = useState(isEmpty);
  if (isEmpty && !wasEmpty) setWasEmpty(true);
  return admin && (wasEmpty || wasConnectedLately(providerChanges));
}

function wasConnectedLately(changes: Connection['providerChanges']): boolean {
  // There were more before: this is not a new installation.
  if (changes.length >= mostChanges) return false;
  const first = changes.findLast(({ from }) => from === 'rpc' || from === 'cli');
  return first !== undefined && Date.now() - first.timestamp < offeredMs;
}

/** Whether only the built-in offline model answers. */
export function hasNoModel(health: Health | undefined): boolean {
  return health?.checks['models']?.detail === 'no model provider is connected';
}

async function loadFirstRun(client: Client, agentId: string, signal: AbortSignal): Promise<FirstRun> {
  const outcomes = await client.batch(
    [
      { method: 'agent.getOperationModels', params: { agentId } },
      { method: 'providers.list' },
      { method: 'usage.report', params: { groupBy: ['provider', 'conversation'], sinceMs: Date.now() - yearMs, limit: 100 } },
      { method: 'agents.get', params: { agentId } },
      { method: 'agents.list' },
      { method: 'tokens.list' },
      { method: 'config.read', params: { section: 'budgets' } },
    ],
    { signal },
  );
  const models = resultOf(outcomes[0]);
  const { providers } = resultOf(outcomes[1]);
  const usage = resultOf(outcomes[2]);
  const { config, workspaceDir } = resultOf(outcomes[3]);
  const { agents } = resultOf(outcomes[4]);
  const { tokens } = resultOf(outcomes[5]);
  const { config: overall } = resultOf(outcomes[6]);
  const model = models.primaryProvider === offline ? undefined : models.primaryModel;
  const costs = new Map<string, Cost>(
    providers.flatMap(({ provider, models: listed }) => listed.map(({ modelId, cost }) => [`${provider}/${modelId}`, cost] as const)),
  );
  const budget = budgetOf(overall, 'all') ?? budgetOf(config.budgets, 'agent');
  const isDone: Record<StepName, boolean> = {
    model: model !== undefined,
    // Tests of a provider belong to no conversation.
    hello: usage.rows.some(({ keys: [provider, conversation] }) => provider !== offline && conversation !== null),
    agent: agents.length > 1 || config.tools.profile !== 'minimal' || config.tools.allow.length > 0,
    client: tokens.some(({ source }) => source === 'created'),
    budget: budget !== undefined,
  };
  return {
    done: new Set(stepNames.filter((name) => isDone[name])),
    model,
    isPriced: model !== undefined && isPaid(costs.get(model)),
    folder: workspaceDir,
    budget,
  };
}

type Cost = Result<'providers.list'>['providers'][number]['models'][number]['cost'];

const isPaid = (cost: Cost | undefined): boolean => cost !== undefined && cost !== null && cost.input + cost.output > 0;

type Outcome<T> = { readonly ok: true; readonly result: T } | { readonly ok: false; readonly error: Error };

function resultOf<T>(outcome: Outcome<T>): T {
  if (!outcome.ok) throw outcome.error;
  return outcome.result;
}

function budgetOf(section: unknown, scope: Budget['scope']): Budget | undefined {
  const caps = new Map<string, unknown>(typeof section === 'object' && section !== null ? Object.entries(section) : []);
  for (const [key, unit, window] of [
    ['perDayUsd', 'usd', 'day'],
    ['perHourUsd', 'usd', 'hour'],
    ['perDayTokens', 'tokens', 'day'],
    ['perHourTokens', 'tokens', 'hour'],
  ] as const) {
    const amount = caps.get(key);
    if (typeof amount === 'number') return { amount, unit, window, scope };
  }
  return undefined;
}
