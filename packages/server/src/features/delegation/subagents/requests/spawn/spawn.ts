import { hash } from 'node:crypto';
import type { EventPayload, Params, ResultInput } from '@gatehouse/contract';
import { AppError } from '../../../../../kernel/app-error.ts';
import { type CallContext, ownerOf } from '../../../../../kernel/call-context.ts';
import type { EventBus } from '../../../../../kernel/event-bus.ts';
import type { FenceText } from '../../../../../runtime/fence.ts';
import type { Agent, AgentsApi } from '../../../../agents/agents/api.ts';
import type { AutonomyApi } from '../../../autonomy/api.ts';
import type { Accepted, RunAcceptance } from '../acceptance.ts';
import type { SpawnGate } from '../gate.ts';
import { type PlanDeps, planRun, type RunSpec } from '../plan-run.ts';
import type { Runner } from '../../run/runner.ts';
import { announcementOf, type AnnounceToDeps } from './announce-to.ts';
import { writeBrief } from './brief.ts';
import { depthOf, refusalOf } from './refusal.ts';
import { saidBefore, type SaidDeps } from './said-before.ts';
import { checkRequiredTools, type RequiredToolsDeps, toolGroupPolicy } from './tools.ts';

export interface SpawnDeps extends PlanDeps, RequiredToolsDeps {
  readonly bus: EventBus;
  readonly agents: AgentsApi;
  readonly autonomy: Pick<AutonomyApi, 'standing' | 'leaseUntilMs' | 'admit' | 'rootOf'>;
  readonly sessions: SaidDeps['sessions'] & AnnounceToDeps['sessions'];
  readonly endpoints: AnnounceToDeps['endpoints'];
  readonly knowsModel: (name: string) => boolean;
  readonly fence: FenceText;
  readonly gate: SpawnGate;
  readonly runner: Pick<Runner, 'start'>;
  readonly ageNow: () => number;
}

type Reason = EventPayload<'session:sub_agent_spawn_rejected'>['reason'];

const sameIdMs = 24 * 3_600_000;

/** `session.spawn`: checks and stores the request; the run begins on its own. `tainted`: the requester had read text from outside. */
export function createSpawn(deps: SpawnDeps) {
  const { config, agents, autonomy, gate } = deps;

  return async function spawn(params: Params<'session.spawn'>, call: CallContext, tainted: boolean): Promise<ResultInput<'session.spawn'>> {
    const { agentCaller: caller } = call;
    const agent = agents.usable(params.agent ?? caller?.agentId, call);
    const reject = (reason: Reason, error: unknown): never => {
      const requesterRef = caller?.conversationRef ?? null;
      deps.bus.emit('session:sub_agent_spawn_rejected', { agentId: agent.id, requesterRef, reason, timestamp: deps.now() }, ownerOf(call));
      throw error;
    };
    if (gate.refusal !== undefined) return reject(gate.refusal.reason, gate.refusal.error);
    const asking = caller === undefined ? undefined : agents.usable(caller.agentId, call);
    const refusal = refusalOf(deps, { agent, asking }, call);
    if (refusal !== undefined) return reject(refusal.reason, refusal.error);
    const wish = await wishOf(params, call, { agent, asking, tainted });
    checkRequiredTools(deps, params.requiredTools, wish);
    const plan = planRun(deps, wish);
    const { maxChildrenPerAgent: children, maxQueuedPerAgent: queued } = config.current.subagentContext;
    const key = keyOf(params, call, deps.ageNow() - sameIdMs);
    let accepted: Accepted;
    try {
      accepted = await deps.runner.start({ ...plan, limits: { children, queued }, ...(key !== undefined && { key }) }, true);
    } catch (error) {
      if (error instanceof AppError && error.code === 'denied') return reject('revoked', error);
      throw error;
    }
    if ('refused' in accepted) return reject(accepted.refused, tooMany(accepted.open, { children, queued }));
    if (!accepted.isNew) return repeated(accepted, deps.now());
    return { ...answer(plan.row.id, plan.row.rootRunId, plan.row.conversationRef), ...(accepted.queuePosition > 0 && { queued: true }) };
  };

  async function wishOf(
    params: Params<'session.spawn'>,
    call: CallContext,
    { agent, asking, tainted }: { readonly agent: Agent; readonly asking: Agent | undefined; readonly tainted: boolean },
  ): Promise<RunSpec> {
    const { agentCaller: caller } = call;
    const principalId = ownerOf(call);
    const policies = [toolGroupPolicy(params.toolGroups ?? config.current.subAgentToolGroups)];
    if (params.model !== undefined && !deps.knowsModel(params.model))
      throw new AppError('precondition_failed', `model: no configured provider has ${params.model}`, { param: 'model' });
    return {
      agent,
      principalId,
      tokenId: call.identity.tokenId,
      rootRunId: autonomy.rootOf(call),
      parentLeaseId: caller?.turn?.run?.leaseId ?? null,
      parentRunId: caller?.turn?.run?.runId ?? null,
      depth: depthOf(call),
      task: params.task,
      message: writeBrief(params, {
        fence: deps.fence,
        tainted: tainted && caller !== undefined,
        said: await saidBefore(deps, params.includeParentHistory, call),
      }),
      model: params.model,
      maxSteps: params.maxSteps,
      policies,
      askedBy: { origin: caller?.turn?.origin ?? 'rpc', bounds: caller?.turn?.toolBounds, agent: asking },
      caps: autonomy.standing(asking ?? agent, caller).caps,
      requester: {
        key: caller === undefined ? `token:${principalId}` : caller.conversationRef,
        ref: caller?.conversationRef ?? null,
        agentId: caller?.agentId ?? null,
        counted: true,
      },
      announce: await announcementOf(deps, params, call),
    };
  }

  function tooMany(open: number, { children, queued }: { readonly children: number; readonly queued: number }): AppError {
    const limits = `security.agentToAgent.subagentContext.maxChildrenPerAgent ${children}, maxQueuedPerAgent ${queued}`;
    return new AppError('precondition_failed', `${open} sub-agents of this caller are running or queued, which is the limit (${limits})`);
  }
}

function keyOf({ operationId, ...asked }: Params<'session.spawn'>, call: CallContext, sinceMs: number): RunAcceptance['key'] {
  if (operationId === undefined) return undefined;
  const caller = call.agentCaller?.conversationRef ?? call.identity.principalId;
  return { key: JSON.stringify(['spawn', caller, operationId]), digest: hash('sha256', JSON.stringify(asked), 'base64url'), sinceMs };
}

const answer = (runId: string, rootRunId: string, conversationRef: string) => ({
  runId,
  rootRunId,
  conversationRef,
  async: true as const,
  inProgress: true as const,
  noteType: 'background_running' as const,
});

function repeated(known: Extract<Accepted, { isNew: false }>, nowMs: number): ResultInput<'session.spawn'> {
  return {
    ...answer(known.runId, known.rootRunId, known.conversationRef),
    deduped: true,
    existingRunId: known.runId,
    dedupAgeMs: Math.max(0, nowMs - known.atMs),
  };
}
