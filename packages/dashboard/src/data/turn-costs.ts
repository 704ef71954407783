import type { Client } from '@gatehouse/client';
import type { LiveEvents } from './live.ts';
import { createStore, type Store } from './store.ts';

/** The summed usage of the model calls of one turn. */
export interface TurnCost {
  /** US dollars; null when the price of one of its calls is unknown. */
  readonly costUsd: number | null;
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** Input tokens read from the provider's prompt cache. */
  readonly cacheReadTokens: number;
  readonly calls: number;
  /** The `provider/model` of the last call. */
  readonly model: string | undefined;
}

/** Keyed by turn id and by trace id: stored messages carry the first, live answers the second. */
export type TurnCosts = ReadonlyMap<string, TurnCost>;

const maxTurns = 500;
const usageKind = 'observability:token_usage';

interface UsageEvent {
  readonly kind: string;
  readonly payload: unknown;
}

/**
 * Collects the cost of each turn from the events of model calls; keeps the newest turns. `readNewest` returns the
 * latest past events, once the costs are shown; without them only turns from now on are known.
 */
export function createTurnCosts(live: Pick<LiveEvents, 'listen'>, readNewest: () => Promise<readonly UsageEvent[]>): Store<TurnCosts> {
  const costs = createStore<TurnCosts>(new Map());
  /** A turn reports all its calls together once it is stored, so what is already known of it is complete. */
  const whole = new Set<string>();

  function add(calls: readonly Call[]): void {
    const next = new Map(costs.get());
    for (const call of calls) {
      const sum = addUp(next.get(call.turnId), call);
      for (const id of [call.turnId, call.traceId]) {
        next.delete(id);
        next.set(id, sum);
      }
    }
    for (const oldest of next.keys()) {
      if (next.size <= 2 * maxTurns) break;
      next.delete(oldest);
    }
    costs.set(next);
  }

  live.listen((event) => {
    const call = readCall(event);
    if (call !== undefined && !whole.has(call.turnId)) add([call]);
  });
  let isRead = false;
  function readOnce(): void {
    if (isRead) return;
    isRead = true;
    readNewest().then(
      (newest) => {
        const before = newest.flatMap((event) => readCall(event) ?? []).filter(({ turnId }) => !costs.get().has(turnId));
        for (const { turnId } of before) whole.add(turnId);
        add(before);
      },
      // Optional: without them, earlier turns show no cost.
      () => undefined,
    );
  }
  return {
    ...costs,
    subscribe(listener) {
      readOnce();
      return costs.subscribe(listener);
    },
  };
}

/** Returns the events of the newest model calls that are stored, and of those of the last second, which are not yet. */
export async function readNewestCalls(client: Pick<Client, 'activity'>): Promise<readonly UsageEvent[]> {
  const pages = await Promise.all([client.activity({ kind: usageKind, limit: 100 }), client.activity({ limit: 20 })]);
  const entries = new Map(pages.flatMap((page) => page.entries.map((entry) => [entry.id, entry] as const)));
  return [...entries.values()].map(({ event, payload }) => ({ kind: event, payload }));
}

interface Call extends Omit<TurnCost, 'calls'> {
  readonly turnId: string;
  readonly traceId: string;
}

function addUp(before: TurnCost | undefined, { costUsd, inputTokens, outputTokens, cacheReadTokens, model }: Call): TurnCost {
  if (before === undefined) return { costUsd, inputTokens, outputTokens, cacheReadTokens, calls: 1, model };
  return {
    costUsd: before.costUsd === null || costUsd === null ? null : before.costUsd + costUsd,
    inputTokens: before.inputTokens + inputTokens,
    outputTokens: before.outputTokens + outputTokens,
    cacheReadTokens: before.cacheReadTokens + cacheReadTokens,
    calls: before.calls + 1,
    model: model ?? before.model,
  };
}

function readCall({ kind, payload }: UsageEvent): Call | undefined {
  if (kind !== usageKind || !isRecord(payload) || !isRecord(payload['tokens'])) return undefined;
  const { turnId, traceId, cost, cacheReadTokens, tokens, provider, model } = payload;
  const { prompt, completion } = tokens;
  if (typeof turnId !== 'string' || typeof traceId !== 'string') return undefined;
  if (typeof prompt !== 'number' || typeof completion !== 'number' || typeof cacheReadTokens !== 'number') return undefined;
  const costUsd = isRecord(cost) && typeof cost['total'] === 'number' ? cost['total'] : null;
  const name = typeof provider === 'string' && typeof model === 'string' ? `${provider}/${model}` : undefined;
  return { turnId, traceId, costUsd, inputTokens: prompt, outputTokens: completion, cacheReadTokens, model: name };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}
