import type { AutonomyProfile, WorkWaiting } from '@gatehouse/contract';
import { isAdmin, ownerOf } from '../../../../kernel/call-context.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import type { Agent, AgentsApi } from '../../../agents/agents/api.ts';
import type { AutonomyConfig } from '../config.ts';
import { evictedProfile } from '../guards/profiles.ts';
import type { AutonomyMethods, RunningTurn } from '../methods.ts';
import type { StoppedWork } from '../stops/stopped-work.ts';
import { knownRoots, listRoots, type RootRow } from './list-store.ts';

type ListedTurn = RunningTurn & { readonly rootRunId: string; readonly startedAtMs: number };

export interface RunListDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly config: AutonomyConfig;
  readonly agents: AgentsApi;
  readonly turns: () => readonly ListedTurn[];
  /** Returns the approval that a run or one of its sub-agents waits for. */
  readonly waitingOf: (rootRunId: string) => WorkWaiting | undefined;
  readonly stopped: StoppedWork;
  readonly profileOf: (agent: Agent, rootRunId: string | undefined) => AutonomyProfile;
}

/** `run.list`: root runs, and running turns that delegated nothing. */
export function createRunList(deps: RunListDeps): AutonomyMethods['run.list'] {
  function shownTurn({ rootRunId, agentId, origin, conversationRef, startedAtMs }: ListedTurn) {
    const agent = deps.agents.find(agentId);
    return {
      rootRunId,
      agentId,
      origin,
      conversationRef,
      profile: agent === undefined ? deps.config.profile : deps.profileOf(agent, rootRunId),
      evicted: deps.stopped.isEvicted(rootRunId),
      state: 'active' as const,
      startedAt: startedAtMs,
      heartbeatAt: deps.clock.now(),
      runs: { open: 0, completed: 0, failed: 0 },
      graphs: 0,
      tokens: 0,
      cost: 0,
    };
  }

  return async ({ state, offset, limit }, call) => {
    const { identity, agentCaller } = call;
    const principalId = isAdmin(call) ? null : ownerOf(call);
    const agentIds = agentCaller === undefined ? (identity.agents ?? null) : [agentCaller.agentId];
    // A turn that delegated nothing has no row; while it runs it comes first.
    const isVisible = (turn: RunningTurn) =>
      (principalId === null || turn.principalId === principalId) && (agentIds === null || agentIds.includes(turn.agentId));
    const turns = state !== undefined && state !== 'active' ? [] : deps.turns().filter(isVisible);
    const known = new Set(turns.length === 0 ? [] : await deps.db.read(knownRoots, { ids: turns.map(({ rootRunId }) => rootRunId) }));
    const plain = turns.filter(({ rootRunId }) => !known.has(rootRunId));
    const live = plain.slice(offset, offset + limit).map(shownTurn);
    const withWaiting = <T extends { readonly rootRunId: string }>(one: T) => {
      const waiting = deps.waitingOf(one.rootRunId);
      return waiting === undefined ? one : { ...one, waiting };
    };
    const { rows, total } = await deps.db.read(listRoots, {
      principalId,
      agentIds,
      state: state ?? null,
      offset: Math.max(0, offset - plain.length),
      limit: limit - live.length,
    });
    const runs = [...live, ...rows.map((row) => shown(row, isAdmin(call)))].map(withWaiting);
    return { runs, total: plain.length + total, offset, limit, hasMore: offset + runs.length < plain.length + total };
  };
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
