import type { AutonomyProfile } from '@gatehouse/contract';
import { AppError } from '../../../kernel/app-error.ts';
import { announceAudit, auditRow } from '../../../kernel/audit.ts';
import { type CallContext, ownerOf } from '../../../kernel/call-context.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { Operation } from '../../../kernel/db/operation.ts';
import type { EventBus } from '../../../kernel/event-bus.ts';
import type { HandlersOf } from '../../../kernel/handlers.ts';
import type { Log } from '../../../kernel/log.ts';
import type { Agent, AgentsApi } from '../../agents/agents/api.ts';
import type { RootEntry, RootStop } from './api.ts';
import type { StoppedWork } from './stops/stopped-work.ts';
import { evict, kill, revoke } from './stops/stop-store.ts';

/** A turn that is running or waits. */
export type RunningTurn = Pick<RootEntry, 'agentId' | 'principalId' | 'conversationRef' | 'origin'>;

export type AutonomyMethods = HandlersOf<'lease.revoke' | 'run.kill' | 'run.list' | 'autonomy.evict'>;

export interface StopMethodDeps {
  readonly db: Db;
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly log: Log;
  readonly agents: AgentsApi;
  readonly turnOf: (rootRunId: string) => RunningTurn | undefined;
  readonly operations: {
    /** Returns the turn at the root of a run, waiting for something else than an approval. */
    readonly findWaitingRoot: Operation<{ readonly rootRunId: string }, RunningTurn | undefined>;
  };
  readonly stopped: StoppedWork;
  readonly stops: readonly ((rootRunId: string, how: RootStop) => Promise<number> | number)[];
  readonly revocations: readonly ((leaseIds: readonly string[]) => void)[];
  readonly profileOf: (agent: Agent, rootRunId: string | undefined) => AutonomyProfile;
}

/** Stops root runs (json-rpc.md §4). An agent stops runs only with the grant `adminTrust`, and only those of its principal. */
export function createStopMethods(deps: StopMethodDeps): Omit<AutonomyMethods, 'run.list'> {
  const { db, bus, clock, stopped } = deps;

  /** Returns what the caller may stop. */
  function reachOf(call: CallContext): { readonly agentIds: readonly string[] | null; readonly principalId: string | null } {
    const { agentCaller, identity } = call;
    const isTrusted = agentCaller === undefined || deps.agents.find(agentCaller.agentId)?.config.autonomy.adminTrust === true;
    if (!isTrusted) throw new AppError('denied', 'Agents may not stop runs (agents.<id>.autonomy.adminTrust is off)');
    return { agentIds: identity.agents ?? null, principalId: agentCaller === undefined ? null : ownerOf(call) };
  }

  async function turnFor(rootRunId: string) {
    const turn = deps.turnOf(rootRunId) ?? (await db.read(deps.operations.findWaitingRoot, { rootRunId }));
    const agent = turn === undefined ? undefined : deps.agents.find(turn.agentId);
    return turn === undefined || agent === undefined ? undefined : { ...turn, profile: deps.profileOf(agent, rootRunId) };
  }

  async function stopAll(rootRunId: string, how: RootStop): Promise<number> {
    const ended = await Promise.allSettled(deps.stops.map(async (stop) => stop(rootRunId, how)));
    let count = 0;
    for (const one of ended) {
      if (one.status === 'fulfilled') count += one.value;
      else deps.log.error({ err: one.reason, rootRunId }, 'Failed to stop part of a run');
    }
    return count;
  }

  return {
    async 'lease.revoke'({ leaseId, rootRunId }, call) {
      const reach = reachOf(call);
      const atMs = clock.now();
      const audit = auditRow(call, atMs, { actionType: 'lease.revoke', classification: 'destructive', target: rootRunId ?? leaseId });
      const turn = rootRunId === undefined ? undefined : await turnFor(rootRunId);
      const { leases, root } = await db.write(revoke, { leaseId, rootRunId, turn, ...reach, audit, atMs });
      for (const { id } of leases) stopped.addLease(id);
      announceAudit(bus, audit);
      for (const listener of deps.revocations) listener(leases.map(({ id }) => id));
      const roots = new Set(leases.map((lease) => lease.rootRunId));
      if (root && rootRunId !== undefined) {
        stopped.addRoot(rootRunId);
        roots.add(rootRunId);
        await stopAll(rootRunId, 'revoke');
      }
      for (const id of roots)
        bus.emit('autonomy:revoked', { rootRunId: id, revoked: leases.filter((lease) => lease.rootRunId === id).length, timestamp: atMs });
      return { revoked: leases.length };
    },

    async 'run.kill'({ rootRunId }, call) {
      const reach = reachOf(call);
      const atMs = clock.now();
      const audit = auditRow(call, atMs, { actionType: 'run.kill', classification: 'destructive', target: rootRunId });
      const { leases } = await db.write(kill, { rootRunId, turn: await turnFor(rootRunId), ...reach, audit, atMs });
      for (const { id } of leases) stopped.addLease(id);
      stopped.addRoot(rootRunId);
      announceAudit(bus, audit);
      const killed = 1 + (await stopAll(rootRunId, 'kill'));
      bus.emit('autonomy:killed', { rootRunId, killed, timestamp: atMs });
      return { killed };
    },

    async 'autonomy.evict'({ rootRunId }, call) {
      const reach = reachOf(call);
      const atMs = clock.now();
      const audit = auditRow(call, atMs, { actionType: 'autonomy.evict', classification: 'mutate', target: rootRunId });
      await db.write(evict, { rootRunId, turn: await turnFor(rootRunId), ...reach, audit, atMs });
      stopped.evict(rootRunId);
      announceAudit(bus, audit);
      return { evicted: true };
    },
  };
}
