import type { AgentBudgets } from '@gatehouse/contract';
import type { BudgetsConfig } from '../config.ts';

/** One configured cap; `limit` is in tokens or in 1e-9 dollars. */
export interface Cap {
  readonly key: keyof AgentBudgets;
  readonly window: 'turn' | 'hour' | 'day';
  readonly unit: 'tokens' | 'nano';
  readonly limit: number;
}

const kinds = [
  { key: 'perTurnTokens', window: 'turn', unit: 'tokens' },
  { key: 'perHourTokens', window: 'hour', unit: 'tokens' },
  { key: 'perDayTokens', window: 'day', unit: 'tokens' },
  { key: 'perTurnUsd', window: 'turn', unit: 'nano' },
  { key: 'perHourUsd', window: 'hour', unit: 'nano' },
  { key: 'perDayUsd', window: 'day', unit: 'nano' },
] as const satisfies readonly Omit<Cap, 'limit'>[];

export interface Caps {
  readonly all: readonly Cap[];
  /** Returns the caps to enforce here; the turn loop enforces `perTurnTokens` itself. */
  readonly held: readonly Cap[];
  /** Returns the first cap in money; under it a call with an unknown price is not made. */
  readonly money: Cap | undefined;
}

const known = new WeakMap<object, Caps>();

/** Lists the caps of a configuration; cached per object. */
export function capsOf(config: AgentBudgets | BudgetsConfig): Caps {
  let caps = known.get(config);
  if (caps === undefined) {
    const limits: Partial<Record<Cap['key'], number | undefined>> = config;
    const all = kinds.flatMap((kind) => {
      const limit = limits[kind.key];
      return limit === undefined ? [] : [{ ...kind, limit: kind.unit === 'nano' ? Math.floor(limit * 1e9) : limit }];
    });
    const held = all.filter((cap) => cap.key !== 'perTurnTokens');
    caps = { all, held, money: held.find((cap) => cap.unit === 'nano') };
    known.set(config, caps);
  }
  return caps;
}
