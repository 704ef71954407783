import type { AutonomyProfile, WorkWaiting } from '@gatehouse/contract';
import { AppError } from '../../../kernel/app-error.ts';
import { announceAudit, auditRow } from '../../../kernel/audit.ts';
import { type CallContext, isAdmin, ownerOf } from '../../../kernel/call-context.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { EventBus } from '../../../kernel/event-bus.ts';
import type { HandlersOf } from '../../../kernel/handlers.ts';
import type { Log } from '../../../kernel/log.ts';
import type { Agent, AgentsApi } from '../../agents/agents/api.ts';
import type { RootEntry, RootStop } from './api.ts';
import type { AutonomyConfig } from './config.ts';
import { evictedProfile } from './guards/profiles.ts';
import { knownRoots, listRoots, type RootRow } from './roots/list-store.ts';
import { evict, kill, revoke } from './stops/stop-store.ts';

/** A turn that is running. */
export type RunningTurn = Pick<RootEntry, 'agentId' | 'principalId' | 'conversationRef' | 'origin'>;

export type AutonomyMethods = HandlersOf<'lease.revoke' | 'run.kill' | 'run.list' | 'autonomy.evict'>;

export interface AutonomyMethodDeps {
  readonly db: Db;
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly log: Log;
  readonly config: AutonomyConfig;
  readonly agents: AgentsApi;
  readonly turns: () => readonly (RunningTurn & { readonly rootRunId: string; readonly startedAtMs: number })[];
  readonly turnOf: (rootRunId: string) => RunningTurn | undefined;
  /** Returns the approval that a run or one of its sub-agents waits for. */
  readonly waitingOf: (rootRunId: string) => WorkWaiting | undefined;
  /** What decisions are based on; grows here after each commit. */
  readonly stopped: { readonly roots: Set<string>; readonly leases: Set<string>; readonly evicted: Set<string> };
  readonly stops: readonly ((rootRunId: string, how: RootStop) => Promise<number> | number)[];
  readonly revocations: readonly ((leaseIds: readonly string[]) => void)[];
  readonly profileOf: (agent: Agent, rootRunId: string | undefined) => AutonomyProfile;
}

/** Stops and lists root runs (json-rpc.md §4). An agent stops runs only with the grant `adminTrust`, and only those of its principal. */
export function createAutonomyMethods(deps: AutonomyMethodDeps): AutonomyMethods {
  const { db, bus, clock, stopped } = deps;

  /** Returns what the caller may stop. */
  function reachOf(call: CallContext): { readonly agentIds: readonly string[] | null; readonly principalId: string | null } {
    const { agentCaller, identity } = call;
    const isTrusted = agentCaller === undefined || deps.agents.find(agentCaller.agentId)?.config.autonomy.adminTrust === true;
    if (!isTrusted) throw new AppError('denied', 'Agents may not stop runs (agents.<id>.autonomy.adminTrust is off)');
    return { agentIds: identity.agents ?? null, principalId: agentCaller === undefined ? null : ownerOf(call) };
  }

  function turnFor(rootRunId: string) {
    const turn = deps.turnOf(rootRunId);
    const agent = turn === undefined ? undefined : deps.agents.find(turn.agentId);
    return turn === undefined || agent === undefined ? undefined : { ...turn, profile: deps.profileOf(agent, rootRunId) };
  }

  function shownTurn({ rootRunId, agentId, origin, conversationRef, startedAtMs }: ReturnType<AutonomyMethodDeps['turns']>[number]) {
    const agent = deps.agents.find(agentId);
    return {
      rootRunId,
      agentId,
      origin,
      conversationRef,
      profile: agent === undefined ? deps.config.profile : deps.profileOf(agent, rootRunId),
      evicted: stopped.evicted.has(rootRunId),
      state: 'active' as const,
      startedAt: startedAtMs,
      heartbeatAt: clock.now(),
      runs: { open: 0, completed: 0, failed: 0 },
      graphs: 0,
      tokens: 0,
      cost: 0,
    };
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
      const turn = rootRunId === undefined ? undefined : turnFor(rootRunId);
      const { leases, root } = await db.write(revoke, { leaseId, rootRunId, turn, ...reach, audit, atMs });
      for (const { id } of leases) remember(stopped.leases, id);
      announceAudit(bus, audit);
      for (const listener of deps.revocations) listener(leases.map(({ id }) => id));
      const roots = new Set(leases.map((lease) => lease.rootRunId));
      if (root && rootRunId !== undefined) {
        remember(stopped.roots, rootRunId);
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
      const { leases } = await db.write(kill, { rootRunId, turn: turnFor(rootRunId), ...reach, audit, atMs });
      for (const { id } of leases) remember(stopped.leases, id);
      remember(stopped.roots, rootRunId);
      announceAudit(bus, audit);
      const killed = 1 + (await stopAll(rootRunId, 'kill'));
      bus.emit('autonomy:killed', { rootRunId, killed, timestamp: atMs });
      return { killed };
    },

    async 'autonomy.evict'({ rootRunId }, call) {
      const reach = reachOf(call);
      const atMs = clock.now();
      const audit = auditRow(call, atMs, { actionType: 'autonomy.evict', classification: 'mutate', target: rootRunId });
      await db.write(evict, { rootRunId, turn: turnFor(rootRunId), ...reach, audit, atMs });
      remember(stopped.evicted, rootRunId);
      announceAudit(bus, audit);
      return { evicted: true };
    },

    async 'run.list'({ state, offset, limit }, call) {
      const { identity, agentCaller } = call;
      const principalId = isAdmin(call) ? null : ownerOf(call);
      const agentIds = agentCaller === undefined ? (identity.agents ?? null) : [agentCaller.agentId];
      // A turn that delegated nothing has no row; while it runs it comes first.
      const isVisible = (turn: RunningTurn) =>
        (principalId === null || turn.principalId === principalId) && (agentIds === null || agentIds.includes(turn.agentId));
      const turns = state !== undefined && state !== 'active' ? [] : deps.turns().filter(isVisible);
      const known = new Set(turns.length === 0 ? [] : await db.read(knownRoots, { ids: turns.map(({ rootRunId }) => rootRunId) }));
      const plain = turns.filter(({ rootRunId }) => !known.has(rootRunId));
      const live = plain.slice(offset, offset + limit).map(shownTurn);
      const withWaiting = <T extends { readonly rootRunId: string }>(one: T) => {
        const waiting = deps.waitingOf(one.rootRunId);
        return waiting === undefined ? one : { ...one, waiting };
      };
      const { rows, total } = await db.read(listRoots, {
        principalId,
        agentIds,
        state: state ?? null,
        offset: Math.max(0, offset - plain.length),
        limit: limit - live.length,
      });
      const runs = [...live, ...rows.map((row) => shown(row, isAdmin(call)))].map(withWaiting);
      return { runs, total: plain.length + total, offset, limit, hasMore: offset + runs.length < plain.length + total };
    },
  };
}

const maxRemembered = 10_000;

/** Remembers an id for checks of running work. The rows know all of them. */
function remember(ids: Set<string>, id: string): void {
  ids.add(id);
  const [oldest] = ids;
  if (ids.size > maxRemembered && oldest !== undefined) ids.delete(oldest);
}

function shown(row: RootRow, isWhole: boolean) {
  const { rootRunId, agentId, origin, conversationRef, profile, state, startedAt, heartbeatAt, endedAt, tokens, nano, unpriced } = row;
  const isEvicted = row.evicted === 1;
  return {
    rootRunId,
    agentId,
    origin,
    conversationRef,
    profile: isEvicted ? evictedProfile(profile) : profile,
    evicted: isEvicted,
    state,
    startedAt,
    heartbeatAt,
    ...(endedAt !== null && { endedAt }),
    runs: { open: row.openRuns, completed: row.completedRuns, failed: row.failedRuns },
    graphs: row.graphs,
    tokens,
    cost: unpriced > 0 ? null : nano / 1e9,
    ...(isWhole && row.cause !== null && { cause: row.cause }),
  };
}
