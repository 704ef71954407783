import type { ModelPrice, ModelUsage } from './model.ts';

/** Cost of one call by part, in integers of 1e-9 US dollars, so that sums are exact. */
export interface Cost {
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
}

/** Returns null when the price is not known. `usage.input` includes cache reads and writes; each token is paid for once. */
export function costOf(usage: ModelUsage, price: ModelPrice | null): Cost | null {
  if (price === null) return null;
  const fresh = Math.max(0, usage.input - usage.cacheRead - usage.cacheWrite);
  return {
    input: nano(fresh, price.input),
    output: nano(usage.output, price.output),
    cacheRead: nano(usage.cacheRead, price.cacheRead),
    cacheWrite: nano(usage.cacheWrite, price.cacheWrite),
  };
}

export function totalCost(cost: Cost): number {
  return cost.input + cost.output + cost.cacheRead + cost.cacheWrite;
}

/** Returns what the cache saved, in 1e-9 US dollars: all input at the plain price, less what was paid; negative when writing cost more. */
export function cacheSaving(usage: ModelUsage, price: ModelPrice | null): number | null {
  const cost = costOf(usage, price);
  if (cost === null || price === null) return null;
  return nano(usage.input, price.input) - cost.input - cost.cacheRead - cost.cacheWrite;
}

/** One token at one dollar per million is 1000 nano-dollars. */
function nano(tokens: number, dollarsPerMillion: number) {
  return Math.round(tokens * dollarsPerMillion * 1000);
}
