import type { Params, ResultInput } from '@gatehouse/contract';
import { AppError } from '../../../../../kernel/app-error.ts';
import { announceAudit } from '../../../../../kernel/audit.ts';
import type { CallContext } from '../../../../../kernel/call-context.ts';
import type { Clock } from '../../../../../kernel/clock.ts';
import type { Db } from '../../../../../kernel/db/db.ts';
import type { EventBus } from '../../../../../kernel/event-bus.ts';
import type { AgentsApi } from '../../../../agents/agents/api.ts';
import type { AutonomyApi } from '../../../autonomy/api.ts';
import type { DurableWork } from '../../../../unattended/durable/api.ts';
import type { EndpointsApi } from '../../../../channels/delivery/api.ts';
import type { SessionsApi } from '../../../../conversations/sessions/api.ts';
import { agentsOf, type GraphInput, type GraphSpec } from '../../definition/definition.ts';
import { checkGraph, type InputDeps } from '../../definition/input.ts';
import { type GraphOperations, graphWork, maxOpenGraphs, maxOpenOfOne } from '../operations.ts';
import type { NodeChange } from '../../store.ts';
import { announceOf } from './announce-to.ts';
import { inputOf } from './input.ts';
import { intakeOf, requesterOf } from './intake.ts';

export interface StartDeps extends InputDeps {
  readonly db: Db;
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly agents: AgentsApi;
  readonly autonomy: Pick<AutonomyApi, 'admit' | 'standing' | 'rootOf'>;
  readonly durable: Pick<DurableWork, 'wake'>;
  readonly sessions: Pick<SessionsApi, 'existing'>;
  readonly endpoints: Pick<EndpointsApi, 'named'>;
  readonly operations: Pick<GraphOperations, 'accept'>;
  /** Throws while nothing may be delegated: policy, pause, stop. */
  readonly assertCanDelegate: (call: CallContext) => void;
  readonly maxDepth: () => number;
}

/** Facts that do not come from the caller's parameters. */
export interface StartFacts {
  /** Whether the calling agent had read text from outside. */
  readonly tainted: boolean;
  /** The same key is the same graph: a call that is retried after a crash. */
  readonly operationKey?: string;
  /** The definition of an ended graph, and its nodes that keep their results. */
  readonly retried?: { readonly input: GraphInput; readonly kept: readonly NodeChange[] };
}

/** `graph.execute`: checks and stores everything before the answer. */
export function createStart(deps: StartDeps) {
  const { db, bus, clock } = deps;

  return async (
    params: Params<'graph.execute'>,
    call: CallContext,
    { tainted, operationKey, retried }: StartFacts,
  ): Promise<ResultInput<'graph.execute'>> => {
    deps.assertCanDelegate(call);
    const depth = call.agentCaller?.turn?.run?.depth ?? 0;
    const maxDepth = deps.maxDepth();
    if (depth >= maxDepth)
      throw new AppError('precondition_failed', `Sub-agents may be nested ${maxDepth} deep (security.agentToAgent.subagentContext.maxSpawnDepth)`);
    const { input, loaded } = retried === undefined ? await inputOf(deps, params, call, operationKey !== undefined) : { input: retried.input };
    const { spec, warnings } = checkGraph(input, params.variables, call, deps);
    const agentId = agentOf(spec, input.defaultAgentId, call);
    const agent = deps.agents.usable(agentId, call);
    const announce = await announceOf(deps, params, { nodes: spec.nodes, agentId }, call);
    const standing = deps.autonomy.standing(agent, call.agentCaller);
    // A loaded graph may have been written by anyone at any time, so it counts as tainted.
    const requester = requesterOf(call, tainted || loaded !== undefined, [...standing.caps]);
    const rootRunId = deps.autonomy.rootOf(call);
    deps.autonomy.admit('orch:graph', agent, call);
    const intake = intakeOf(call, {
      atMs: clock.now(),
      agentId,
      input,
      variables: params.variables,
      announcesNodes: params.node_progress,
      spec,
      kept: retried?.kept ?? [],
      loaded,
      announce,
      requester,
      rootRunId,
      profile: standing.profile,
      operationKey,
    });
    const { row, audit } = intake;
    const accepted = await db.write(deps.operations.accept, intake);
    if (accepted === 'full') throw busy(`${maxOpenGraphs} graphs are already running`);
    if (accepted === 'full_of_own') throw busy(`${maxOpenOfOne} of your graphs are already running`);
    if (accepted === 'gone') throw new AppError('precondition_failed', 'The graph was already started', { param: 'graphId' });
    const isRepeat = accepted !== 'accepted';
    if (!isRepeat) announceAudit(bus, audit);
    deps.durable.wake(graphWork);
    const graphId = isRepeat ? accepted.graphId : row.id;
    return {
      graphId,
      async: true,
      nodeCount: row.nodeCount,
      ...(row.label !== null && { label: row.label }),
      rootRunId,
      hint: `Call graph.status with graphId ${graphId} for its progress; its end is announced ${{ inbox: 'in the inbox', conversation: 'in the conversation', chat: 'in the chat' }[announce.to]}.`,
      warnings,
    };
  };

  /** Returns the agent that the graph runs for: the calling agent, otherwise the first that works in it. */
  function agentOf({ nodes }: GraphSpec, defaultAgentId: string | undefined, call: CallContext): string {
    const named = nodes.flatMap(agentsOf).find((agentId) => agentId !== undefined);
    return call.agentCaller?.agentId ?? named ?? defaultAgentId ?? deps.agents.defaultId;
  }
}

const busy = (message: string) => new AppError('rate_limited', `${message}, which is the limit`, { retryAfterMs: 10_000 });
