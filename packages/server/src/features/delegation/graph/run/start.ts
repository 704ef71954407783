import { hash } from 'node:crypto';
import type { Params, ResultInput } from '@gatehouse/contract';
import { AppError } from '../../../../kernel/app-error.ts';
import { announceAudit, auditRow } from '../../../../kernel/audit.ts';
import { type CallContext, ownerOf } from '../../../../kernel/call-context.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import type { EventBus } from '../../../../kernel/event-bus.ts';
import { newId } from '../../../../kernel/ids.ts';
import type { AgentsApi } from '../../../agents/agents/api.ts';
import type { AutonomyApi } from '../../autonomy/api.ts';
import type { DurableWork } from '../../../unattended/durable/api.ts';
import type { SessionsApi } from '../../../conversations/sessions/api.ts';
import { agentsOf, type GraphInput, type GraphSpec } from '../definition/definition.ts';
import { checkGraph, type InputDeps, invalid, storedForm } from '../definition/input.ts';
import { type GraphOperations, graphWork, maxOpenGraphs, maxOpenOfOne } from './operations.ts';
import { notFound, reachOf } from '../status/reach.ts';
import { findGraph } from '../status/read-store.ts';
import { type Announce, type GraphRow, parseDefinition, type Requester } from '../rows.ts';

export interface StartDeps extends InputDeps {
  readonly db: Db;
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly agents: AgentsApi;
  readonly autonomy: Pick<AutonomyApi, 'admit' | 'standing' | 'rootOf'>;
  readonly durable: Pick<DurableWork, 'wake'>;
  readonly sessions: Pick<SessionsApi, 'existing'>;
  readonly operations: Pick<GraphOperations, 'accept'>;
  /** Throws while nothing may be delegated: policy, pause, stop. */
  readonly assertCanDelegate: (call: CallContext) => void;
  readonly maxDepth: number;
}

/** How long a loaded graph can be started. */
export const loadedMs = 24 * 3_600_000;

/** Facts that do not come from the caller's parameters. */
export interface StartFacts {
  /** Whether the calling agent had read text from outside. */
  readonly tainted: boolean;
  /** The same key is the same graph: a call that is retried after a crash. */
  readonly operationKey?: string;
}

/** `graph.execute`: checks and stores everything before the answer. */
export function createStart(deps: StartDeps) {
  const { db, bus, clock } = deps;

  return async (params: Params<'graph.execute'>, call: CallContext, { tainted, operationKey }: StartFacts): Promise<ResultInput<'graph.execute'>> => {
    deps.assertCanDelegate(call);
    const depth = call.agentCaller?.turn?.run?.depth ?? 0;
    if (depth >= deps.maxDepth)
      throw new AppError(
        'precondition_failed',
        `Sub-agents may be nested ${deps.maxDepth} deep (security.agentToAgent.subagentContext.maxSpawnDepth)`,
      );
    const { input, loaded } = await inputOf(params, call, operationKey !== undefined);
    const { spec, warnings } = checkGraph(input, params.variables, call, deps);
    const agentId = agentOf(spec, input.defaultAgentId, call);
    const agent = deps.agents.usable(agentId, call);
    const announce = await announceOf(params, spec, agentId, call);
    const standing = deps.autonomy.standing(agent, call.agentCaller);
    // A loaded graph may have been written by anyone at any time, so it counts as tainted.
    const requester = requesterOf(call, tainted || loaded !== undefined, [...standing.caps]);
    const rootRunId = deps.autonomy.rootOf(call);
    deps.autonomy.admit('orch:graph', agent, call);
    const atMs = clock.now();
    const id = loaded?.id ?? newId('gr');
    const workId = newId('wi');
    const row: GraphRow = {
      id,
      principalId: ownerOf(call),
      tokenId: call.identity.tokenId,
      agentId,
      label: input.label ?? null,
      definitionJson: JSON.stringify(storedForm(input)),
      variablesJson: JSON.stringify(params.variables),
      nodeCount: spec.nodes.length,
      rootRunId,
      requesterJson: requester === undefined ? null : JSON.stringify(requester),
      byAgent: Number(requester !== undefined),
      announceJson: JSON.stringify(announce),
      nodeProgress: Number(params.node_progress),
      workId,
      state: 'running',
      cancelReason: null,
      createdAtMs: atMs,
      startedAtMs: atMs,
      endedAtMs: null,
      waitedMs: 0,
    };
    const audit = auditRow(call, atMs, { actionType: 'graph.execute', classification: 'mutate', target: id, metadata: { nodes: row.nodeCount } });
    const accepted = await db.write(deps.operations.accept, {
      row,
      nodeIds: spec.nodes.map((node) => node.id),
      wasLoaded: loaded !== undefined,
      root: {
        rootRunId,
        kind: 'graph',
        agentId,
        principalId: row.principalId,
        conversationRef: call.agentCaller?.conversationRef ?? null,
        origin: requester?.origin ?? 'rpc',
        profile: standing.profile,
        atMs,
      },
      work: {
        id: workId,
        kind: graphWork,
        key: operationKey ?? id,
        digest: hash('sha256', row.definitionJson),
        agentId,
        payload: { graphId: id },
        atMs,
      },
      audit,
    });
    if (accepted === 'full') throw busy(`${maxOpenGraphs} graphs are already running`);
    if (accepted === 'full_of_own') throw busy(`${maxOpenOfOne} of your graphs are already running`);
    if (accepted === 'gone') throw new AppError('precondition_failed', 'The graph was already started', { param: 'graphId' });
    const isRepeat = accepted !== 'accepted';
    if (!isRepeat) announceAudit(bus, audit);
    deps.durable.wake(graphWork);
    const graphId = isRepeat ? accepted.graphId : id;
    return {
      graphId,
      async: true,
      nodeCount: row.nodeCount,
      ...(row.label !== null && { label: row.label }),
      rootRunId,
      hint: `Call graph.status with graphId ${graphId} for its progress; its end is announced ${announce.to === 'inbox' ? 'in the inbox' : 'in the conversation'}.`,
      warnings,
    };
  };

  /** Returns the definition to start. A call that may be a retry can name a graph that was already started: the acceptance recognizes it. */
  async function inputOf(
    params: Params<'graph.execute'>,
    call: CallContext,
    isRepeatable: boolean,
  ): Promise<{ input: GraphInput; loaded?: GraphRow }> {
    if (params.nodes !== undefined) return { input: { ...params, nodes: params.nodes } };
    const found = await db.read(findGraph, { ...reachOf(call), ownerId: ownerOf(call), named: params.graphId ?? '' });
    // A caller that sees all graphs may still start only its own.
    if (found === undefined || found.row.id !== params.graphId || found.row.principalId !== ownerOf(call)) throw notFound();
    const { row } = found;
    if (row.state === 'pending' && row.createdAtMs + loadedMs <= clock.now()) throw notFound();
    if (row.state !== 'pending' && !isRepeatable) throw new AppError('precondition_failed', 'The graph was already started', { param: 'graphId' });
    const { nodes, edges, label, settings = {}, defaultAgentId } = parseDefinition(row.definitionJson);
    const { on_failure, timeout_ms, budget } = params;
    const changed = {
      on_failure: on_failure ?? params.settings?.on_failure,
      timeout_ms: timeout_ms ?? params.settings?.timeout_ms,
      budget: budget ?? params.settings?.budget,
    };
    return { input: { nodes, edges: params.edges ?? edges, label: params.label ?? label, settings, defaultAgentId, ...changed }, loaded: row };
  }

  /** Returns the agent that the graph runs for: the calling agent, otherwise the first that works in it. */
  function agentOf({ nodes }: GraphSpec, defaultAgentId: string | undefined, call: CallContext): string {
    const named = nodes.flatMap(agentsOf).find((agentId) => agentId !== undefined);
    return call.agentCaller?.agentId ?? named ?? defaultAgentId ?? deps.agents.defaultId;
  }

  async function announceOf(params: Params<'graph.execute'>, { nodes }: GraphSpec, agentId: string, call: CallContext): Promise<Announce> {
    const { announceChannelType: type, announceChannelId: channelId } = params;
    const caller = call.agentCaller;
    if (caller !== undefined) {
      if (type !== undefined || channelId !== undefined)
        throw invalid([{ path: 'announceChannelType', message: 'agents are notified in their own conversation and must not name a channel' }]);
      // Nobody reads the conversation of a sub-agent.
      return caller.turn?.run === undefined ? { to: 'conversation', conversationRef: caller.conversationRef, agentId } : { to: 'inbox' };
    }
    const isAsking = nodes.some(({ work }) => work?.type === 'approval-gate');
    if (type === undefined && channelId === undefined && !isAsking) return { to: 'inbox' };
    if (type === undefined || channelId === undefined) {
      const missing = type === undefined ? 'announceChannelType' : 'announceChannelId';
      const why = isAsking ? 'required for a graph with approval gates' : 'required together with the other';
      throw invalid([
        { path: missing, message: `${why}: announceChannelType "gateway", and announceChannelId "inbox" or the reference of a conversation` },
      ]);
    }
    if (type !== 'gateway') throw invalid([{ path: 'announceChannelType', message: 'expected "gateway"' }]);
    if (channelId === 'inbox') return { to: 'inbox' };
    const target = await deps.sessions.existing({ conversationRef: channelId }, call);
    if (target.principalId !== ownerOf(call)) throw new AppError('not_found', 'Conversation not found', { param: 'announceChannelId' });
    return { to: 'conversation', conversationRef: target.ref, agentId: target.agentId };
  }
}

function requesterOf({ agentCaller }: CallContext, tainted: boolean, caps: Requester['caps']): Requester | undefined {
  if (agentCaller === undefined) return undefined;
  const { conversationRef, turn } = agentCaller;
  return {
    conversationRef,
    turnId: turn?.turnId ?? '',
    origin: turn?.origin ?? 'rpc',
    leaseId: turn?.run?.leaseId ?? null,
    runId: turn?.run?.runId ?? null,
    depth: turn?.run?.depth ?? 0,
    bounds: turn?.toolBounds,
    tainted,
    caps,
  };
}

const busy = (message: string) => new AppError('rate_limited', `${message}, which is the limit`, { retryAfterMs: 10_000 });
