import type { Live } from '../../../../kernel/config/live.ts';
import type { AutonomyProfile, WorkWaiting } from '@gatehouse/contract';
import { isAdmin, ownerOf } from '../../../../kernel/call-context.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import type { Operation } from '../../../../kernel/db/operation.ts';
import { type StoredWait, viewOfWait } from '../../../../runtime/waiting-view.ts';
import type { Agent, AgentsApi } from '../../../agents/agents/api.ts';
import type { AutonomyConfig } from '../config.ts';
import { evictedProfile } from '../guards/profiles.ts';
import type { AutonomyMethods, RunningTurn } from '../methods.ts';
import type { StoppedWork } from '../stops/stopped-work.ts';
import { knownRoots, listRoots, type RootRow } from './list-store.ts';

export type ListedTurn = RunningTurn & { readonly rootRunId: string; readonly startedAtMs: number };

export interface RunListDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly config: Live<AutonomyConfig>;
  readonly agents: AgentsApi;
  readonly turns: () => readonly ListedTurn[];
  /** Returns the approval that a run or one of its sub-agents waits for. */
  readonly waitingOf: (rootRunId: string) => WorkWaiting | undefined;
  readonly operations: {
    readonly listWaitingRoots: Operation<WaitingPage, WaitingRoots>;
    readonly readRootWaits: Operation<{ readonly rootRunIds: readonly string[] }, ReadonlyMap<string, StoredWait>>;
    /** Returns what these roots do: the labels of their graphs, or the tasks of their first sub-agents. */
    readonly readRootTasks: Operation<{ readonly rootRunIds: readonly string[] }, ReadonlyMap<string, string>>;
  };
  readonly stopped: StoppedWork;
  readonly profileOf: (agent: Agent, rootRunId: string | undefined) => AutonomyProfile;
}

/** A page of waiting turns, without those of the roots in `except`; null means all principals or agents. */
export interface WaitingPage {
  readonly principalId: string | null;
  readonly agentIds: readonly string[] | null;
  readonly except: readonly string[];
  readonly offset: number;
  readonly limit: number;
}

export interface WaitingRoots {
  readonly turns: readonly ListedTurn[];
  /** Number of all turns of all pages. */
  readonly total: number;
  /** Roots that have ended according to their rows, and wait all the same. */
  readonly resuming: readonly string[];
}

/** `run.list`: root runs, and running or waiting turns that delegated nothing. */
export function createRunList(deps: RunListDeps): AutonomyMethods['run.list'] {
  function shownTurn({ rootRunId, agentId, origin, conversationRef, startedAtMs }: ListedTurn) {
    const agent = deps.agents.find(agentId);
    return {
      rootRunId,
      agentId,
      origin,
      conversationRef,
      profile: agent === undefined ? deps.config.current.profile : deps.profileOf(agent, rootRunId),
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
    // A turn that delegated nothing has no row; while it runs it comes first, and then come the waiting ones.
    const isVisible = (turn: RunningTurn) =>
      (principalId === null || turn.principalId === principalId) && (agentIds === null || agentIds.includes(turn.agentId));
    const isActive = state === undefined || state === 'active';
    // A root may have several turns, such as those of messages that it sent; the oldest is its own.
    const turns = [...new Map(deps.turns().map((turn) => [turn.rootRunId, turn])).values()].filter(isVisible);
    const known = new Set(turns.length === 0 ? [] : await deps.db.read(knownRoots, { ids: turns.map(({ rootRunId }) => rootRunId) }));
    const plain = isActive ? turns.filter(({ rootRunId }) => !known.has(rootRunId)) : [];
    const live = plain.slice(offset, offset + limit);
    const waiting = await deps.db.read(deps.operations.listWaitingRoots, {
      principalId,
      agentIds,
      except: turns.map(({ rootRunId }) => rootRunId),
      offset: Math.max(0, offset - plain.length),
      limit: isActive ? limit - live.length : 0,
    });
    const begun = isActive ? plain.length + waiting.total : 0;
    const shownTurns = [...live, ...waiting.turns].map(shownTurn);
    const { rows, total } = await deps.db.read(listRoots, {
      principalId,
      agentIds,
      state: state ?? null,
      resuming: [...known, ...waiting.resuming],
      offset: Math.max(0, offset - begun),
      limit: limit - shownTurns.length,
    });
    const found = [...shownTurns, ...rows.map((row) => shown(row, isAdmin(call)))];
    const rootRunIds = found.map(({ rootRunId }) => rootRunId);
    const waits = await deps.db.read(deps.operations.readRootWaits, { rootRunIds });
    const tasks = isAdmin(call) ? await deps.db.read(deps.operations.readRootTasks, { rootRunIds }) : new Map<string, string>();
    const runs = found.map((one) => {
      const wait = waits.get(one.rootRunId);
      const shownWait = deps.waitingOf(one.rootRunId) ?? (wait && viewOfWait(wait, isAdmin(call)));
      const task = tasks.get(one.rootRunId);
      return { ...one, ...(task !== undefined && { task }), ...(shownWait !== undefined && { waiting: shownWait }) };
    });
    return { runs, total: begun + total, offset, limit, hasMore: offset + runs.length < begun + total };
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
    ...(endedAt !== null && state !== 'active' && { endedAt }),
    runs: { open: row.openRuns, completed: row.completedRuns, failed: row.failedRuns },
    graphs: row.graphs,
    tokens,
    cost: unpriced > 0 ? null : nano / 1e9,
    ...(isWhole && row.cause !== null && { cause: row.cause }),
  };
}
