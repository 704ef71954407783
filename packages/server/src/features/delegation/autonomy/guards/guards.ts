import type { Live } from '../../../../kernel/config/live.ts';
import type { Capability } from '@gatehouse/contract';
import { AppError } from '../../../../kernel/app-error.ts';
import type { AgentCaller, CallContext } from '../../../../kernel/call-context.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import type { EventBus } from '../../../../kernel/event-bus.ts';
import { newId } from '../../../../kernel/ids.ts';
import { type Quota, RateLimiter } from '../../../../kernel/limiter.ts';
import type { Log } from '../../../../kernel/log.ts';
import { announceAudit, writeAudit } from '../../../../kernel/audit.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import type { Agent } from '../../../agents/agents/api.ts';
import type { Standing } from '../api.ts';
import type { AutonomyConfig } from '../config.ts';
import type { LiveRoots } from '../roots/live-roots.ts';

export interface GuardDeps {
  readonly db: Db;
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly log: Log;
  readonly config: Live<AutonomyConfig>;
  readonly roots: LiveRoots;
  readonly standing: (agent: Agent, caller: AgentCaller | undefined) => Standing;
}

/** The subject of a decision about a capability; content-free. */
export interface Decision {
  readonly capability: Capability;
  readonly agentId: string;
  readonly call: CallContext;
  readonly tool?: string;
  readonly reason?: string;
}

/** Decides what agents may start within their quotas, and records each decision. */
export class Guards {
  readonly #deps: GuardDeps;
  readonly #spawns: RateLimiter;
  readonly #messages: RateLimiter;
  readonly #outward: RateLimiter;

  constructor(deps: GuardDeps) {
    this.#deps = deps;
    const limiter = (windowMs: number, limitOf: (guards: AutonomyConfig['guards']) => number) =>
      new RateLimiter({ limit: () => limitOf(deps.config.current.guards), windowMs, slides: true, clock: deps.clock });
    this.#spawns = limiter(60_000, ({ spawn }) => spawn.perMinute);
    this.#messages = limiter(3_600_000, ({ message }) => message.perHour);
    this.#outward = limiter(3_600_000, ({ outward }) => outward.perHour);
  }

  /** Throws `denied` or `rate_limited`. */
  admit(capability: Capability, agent: Agent, call: CallContext): void {
    const caller = call.agentCaller;
    if (!this.#deps.standing(agent, caller).caps.has(capability)) {
      this.deny({ capability, agentId: agent.id, call, reason: 'standing' });
      throw new AppError('denied', `Capability denied: ${capability}`);
    }
    const root = caller?.turn?.rootRunId ?? agent.id;
    const over = this.#deps.roots.refusal(root, { tokens: 1, nano: 1 });
    if (over !== undefined) {
      this.deny({ capability, agentId: agent.id, call, reason: 'budget' });
      throw new AppError('rate_limited', over.message, { retryAfterMs: 60_000 });
    }
    const quota = this.#take(capability, root, agent.id);
    if (quota?.allowed !== false) return;
    this.deny({ capability, agentId: agent.id, call, reason: 'guard' });
    throw new AppError('rate_limited', `Too many calls of ${capability}; try again later`, { retryAfterMs: Math.ceil(quota.resetMs) });
  }

  /** Counts an outward call; false when the agent made too many. */
  takeOutward(agentId: string): boolean {
    return this.#outward.take(agentId).allowed;
  }

  allow(decision: Decision): void {
    this.#emit(decision, 'allow');
  }

  /** Records a refusal, also as an audit row. The refusal itself does not wait for the write. */
  deny(decision: Decision): void {
    this.#emit(decision, 'deny');
    const { db, bus, clock, log } = this.#deps;
    const { capability, agentId, call, tool, reason } = decision;
    const row = {
      id: newId('au'),
      atMs: clock.now(),
      principalId: call.identity.principalId,
      action: 'capability.denied',
      classification: 'security' as const,
      outcome: 'denied' as const,
      target: call.agentCaller?.turn?.rootRunId,
      metadata: { capability, agentId, ...(tool !== undefined && { tool }), ...(reason !== undefined && { reason }) },
      traceId: call.traceId,
    };
    void db.write(writeAudit, row).then(
      () => announceAudit(bus, row),
      (error: unknown) => log.error({ err: error }, 'Failed to record a denial'),
    );
  }

  /** Returns current figures. */
  shown(agent: Agent, { agentCaller }: CallContext) {
    const { profile, caps } = this.#deps.standing(agent, agentCaller);
    const rootRunId = agentCaller?.turn?.rootRunId;
    return {
      profile,
      caps: [...caps],
      ...(rootRunId !== undefined && { rootRunId }),
      budget: this.#deps.roots.left(rootRunId),
      spawns: { perMinuteRemaining: this.#spawns.peek(rootRunId ?? agent.id).remaining },
      messages: { perHourRemaining: this.#messages.peek(agent.id).remaining },
      outwardQuota: { perHourRemaining: this.#outward.peek(agent.id).remaining },
    };
  }

  #take(capability: Capability, root: string, agentId: string): Quota | undefined {
    if (capability === 'orch:spawn' || capability === 'orch:graph') return this.#spawns.take(root);
    if (capability === 'orch:message') return this.#messages.take(agentId);
    return undefined;
  }

  #emit({ capability, agentId, call, tool, reason }: Decision, decision: 'allow' | 'deny'): void {
    const { bus, clock } = this.#deps;
    const turn = call.agentCaller?.turn;
    if (turn === undefined || !bus.wants('capability:audited')) return;
    bus.emit('capability:audited', {
      agentId,
      capability,
      rootRunId: turn.rootRunId,
      decision,
      ...(tool !== undefined && { tool }),
      ...(reason !== undefined && { reason }),
      ...(turn.run !== undefined && { runId: turn.run.runId, leaseId: turn.run.leaseId }),
      timestamp: clock.now(),
    });
  }
}
