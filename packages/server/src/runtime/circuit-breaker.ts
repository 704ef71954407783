import type { AgentConfig } from '@gatehouse/contract';
import type { Clock } from '../kernel/clock.ts';

/** How a turn ended, as far as the health of what it depends on goes; `neutral` says nothing about it (aborted, refused, over budget). */
export type TurnHealth = 'success' | 'failure' | 'neutral';

/** Leave to run; `settle` is called once, when the turn is over. */
export interface Admission {
  readonly settle: (health: TurnHealth) => void;
}

/**
 * One breaker per agent: after so many failed turns in a row it opens and turns end at once; after `resetMs` one turn
 * may try, and closes it or opens it anew.
 */
export interface CircuitBreakers {
  admit(agentId: string, config: AgentConfig['circuitBreaker']): Admission | { readonly retryAfterMs: number };
}

interface Breaker {
  failures: number;
  /** Undefined while closed. */
  openedAtMs: number | undefined;
  probing: boolean;
}

export function createCircuitBreakers(clock: Clock): CircuitBreakers {
  /** Only agents that failed lately: a success forgets the agent. */
  const breakers = new Map<string, Breaker>();

  function settle(agentId: string, config: AgentConfig['circuitBreaker'], isProbe: boolean, health: TurnHealth): void {
    if (health === 'success') {
      breakers.delete(agentId);
      return;
    }
    let breaker = breakers.get(agentId);
    if (health === 'neutral') {
      if (isProbe && breaker !== undefined) breaker.probing = false;
      return;
    }
    if (breaker === undefined) {
      breaker = { failures: 0, openedAtMs: undefined, probing: false };
      breakers.set(agentId, breaker);
    }
    breaker.failures += 1;
    // Turns that began before it opened and fail later do not keep it open longer.
    if (isProbe || (breaker.openedAtMs === undefined && breaker.failures >= config.failures)) breaker.openedAtMs = clock.monotonic();
    if (isProbe) breaker.probing = false;
  }

  return {
    admit(agentId, config) {
      const breaker = breakers.get(agentId);
      let isProbe = false;
      if (breaker?.openedAtMs !== undefined) {
        const leftMs = breaker.openedAtMs + config.resetMs - clock.monotonic();
        if (leftMs > 0) return { retryAfterMs: Math.ceil(leftMs) };
        if (breaker.probing) return { retryAfterMs: Math.min(config.resetMs, 1000) };
        breaker.probing = true;
        isProbe = true;
      }
      return { settle: (health) => settle(agentId, config, isProbe, health) };
    },
  };
}
