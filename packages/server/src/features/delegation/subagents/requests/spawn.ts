import { hash } from 'node:crypto';
import { type EventPayload, type Params, type ResultInput, ToolPolicy } from '@gatehouse/contract';
import { AppError } from '../../../../kernel/app-error.ts';
import { type CallContext, ownerOf } from '../../../../kernel/call-context.ts';
import type { EventBus } from '../../../../kernel/event-bus.ts';
import { countTokens } from '../../../../llm/count-tokens.ts';
import type { FenceLabel } from '../../../../runtime/fence.ts';
import type { Tool } from '../../../../runtime/tool.ts';
import { boundTools, refuseTool, toolGroupNames } from '../../../../runtime/tool-policy.ts';
import type { Agent, AgentsApi } from '../../../agents/agents/api.ts';
import type { AutonomyApi } from '../../autonomy/api.ts';
import type { SessionsApi } from '../../../conversations/sessions/api.ts';
import type { Accepted, RunAcceptance } from './acceptance.ts';
import { writeBrief } from './brief.ts';
import type { SpawnGate } from './gate.ts';
import { announceToCaller, type PlanDeps, planRun, type RunSpec, toInbox } from './plan-run.ts';
import { tailOf } from '../../../../kernel/cut-text.ts';
import type { Runner } from '../run/runner.ts';

export interface SpawnDeps extends PlanDeps {
  readonly bus: EventBus;
  readonly agents: AgentsApi;
  readonly autonomy: Pick<AutonomyApi, 'standing' | 'leaseUntilMs' | 'admit' | 'rootOf'>;
  readonly sessions: Pick<SessionsApi, 'said' | 'existing'>;
  readonly knowsModel: (name: string) => boolean;
  readonly toolsOf: (agentId: string) => readonly Tool[];
  readonly fence: (text: string, label: FenceLabel) => string;
  readonly gate: SpawnGate;
  readonly start: Runner['start'];
  readonly ageNow: () => number;
}

type Reason = EventPayload<'session:sub_agent_spawn_rejected'>['reason'];

const sameIdMs = 24 * 3_600_000;
const saidMessages = 40;

/** `session.spawn`: checks and stores the request; the run begins on its own. `tainted`: the requester had read text from outside. */
export function createSpawn(deps: SpawnDeps) {
  const { config, agents, autonomy, gate } = deps;

  return async function spawn(params: Params<'session.spawn'>, call: CallContext, tainted: boolean): Promise<ResultInput<'session.spawn'>> {
    const { agentCaller: caller } = call;
    const agent = agents.usable(params.agent ?? caller?.agentId, call);
    const requesterRef = caller?.conversationRef ?? null;
    const principalId = ownerOf(call);
    const reject = (reason: Reason, error: unknown): never => {
      deps.bus.emit('session:sub_agent_spawn_rejected', { agentId: agent.id, requesterRef, reason, timestamp: deps.now() }, principalId);
      throw error;
    };
    if (gate.refusal !== undefined) return reject(gate.refusal.reason, gate.refusal.error);
    const asking = caller === undefined ? undefined : agents.usable(caller.agentId, call);
    if (!isAllowed(agent, asking)) return reject('not_allowed', new AppError('denied', `Sub-agents of agent ${agent.id} are not allowed here`));
    admit(asking ?? agent, call, reject);
    const depth = (caller?.turn?.run?.depth ?? 0) + 1;
    const { maxSpawnDepth, maxChildrenPerAgent: children, maxQueuedPerAgent: queued } = config.subagentContext;
    if (depth > maxSpawnDepth)
      return reject(
        'depth_exceeded',
        new AppError('precondition_failed', `Sub-agents may be nested ${maxSpawnDepth} deep (security.agentToAgent.subagentContext.maxSpawnDepth)`),
      );
    const policies = [policyOf(params.toolGroups)];
    checkModel(params.model);
    const wish: RunSpec = {
      agent,
      principalId,
      tokenId: call.identity.tokenId,
      rootRunId: autonomy.rootOf(call),
      parentLeaseId: caller?.turn?.run?.leaseId ?? null,
      parentRunId: caller?.turn?.run?.runId ?? null,
      depth,
      task: params.task,
      message: writeBrief(params, { fence: deps.fence, tainted: tainted && caller !== undefined, said: await saidBefore(params, call) }),
      model: params.model,
      maxSteps: params.maxSteps,
      policies,
      askedBy: { origin: caller?.turn?.origin ?? 'rpc', bounds: caller?.turn?.toolBounds, agent: asking },
      caps: autonomy.standing(asking ?? agent, caller).caps,
      requester: {
        key: caller === undefined ? `token:${principalId}` : caller.conversationRef,
        ref: requesterRef,
        agentId: caller?.agentId ?? null,
        counted: true,
      },
      announce: await announcementOf(params, call),
    };
    checkTools(params.requiredTools, wish);
    const plan = planRun(deps, wish);
    const key = keyOf(params, call, deps.ageNow() - sameIdMs);
    let accepted: Accepted;
    try {
      accepted = await deps.start({ ...plan, limits: { children, queued }, ...(key !== undefined && { key }) }, true);
    } catch (error) {
      if (error instanceof AppError && error.code === 'denied') return reject('revoked', error);
      throw error;
    }
    if ('refused' in accepted)
      return reject(
        accepted.refused,
        new AppError(
          'precondition_failed',
          `${accepted.open} sub-agents of this caller are running or queued, which is the limit (security.agentToAgent.subagentContext.maxChildrenPerAgent ${children}, maxQueuedPerAgent ${queued})`,
        ),
      );
    if (!accepted.isNew) return repeated(accepted, deps.now());
    return { ...answer(plan.row.id, plan.row.rootRunId, plan.row.conversationRef), ...(accepted.queuePosition > 0 && { queued: true }) };
  };

  function isAllowed(agent: Agent, asking: Agent | undefined): boolean {
    if (asking === undefined) return true;
    if (!config.enabled) return false;
    return agent.id === asking.id || config.allowAgents.length === 0 || config.allowAgents.includes(agent.id);
  }

  function admit(agent: Agent, call: CallContext, reject: (reason: Reason, error: unknown) => never): void {
    try {
      autonomy.admit('orch:spawn', agent, call);
    } catch (error) {
      reject(error instanceof AppError && error.code === 'rate_limited' ? 'guard' : 'capability', error);
    }
  }

  function checkModel(model: string | undefined): void {
    if (model !== undefined && !deps.knowsModel(model))
      throw new AppError('precondition_failed', `model: no configured provider has ${model}`, { param: 'model' });
  }

  function policyOf(groups: readonly string[] = config.subAgentToolGroups): ToolPolicy {
    const unknown = groups.find((name) => !toolGroupNames.includes(name));
    if (unknown !== undefined)
      throw new AppError('invalid_params', `toolGroups: unknown group ${unknown}; expected some of ${toolGroupNames.join(', ')}`, {
        param: 'toolGroups',
      });
    return ToolPolicy.parse({ profile: 'none', allow: groups.map((name) => `group:${name}`) });
  }

  function checkTools(required: readonly string[] | undefined, { agent, policies, askedBy }: RunSpec): void {
    if (required === undefined) return;
    const all = [...policies, ...(askedBy.bounds?.policies ?? [])];
    const others = [askedBy.agent, ...(askedBy.bounds?.agents ?? []).map((id) => agents.find(id))];
    const bounding = others.filter((other, index) => index > 0 || other !== undefined).map((other) => other?.config);
    const tools = boundTools(deps.toolsOf(agent.id), all, bounding, askedBy.origin);
    const missing = required.filter(
      (name) => !tools.some((tool) => tool.name === name && refuseTool(tool, agent.config, askedBy.origin) === undefined),
    );
    if (missing.length > 0)
      throw new AppError('precondition_failed', `requiredTools: the sub-agent would not have ${missing.join(', ')}`, { param: 'requiredTools' });
  }

  /** Returns the latest messages of the requesting conversation, as many as fit. */
  async function saidBefore({ includeParentHistory: wanted }: Params<'session.spawn'>, call: CallContext): Promise<string | undefined> {
    const { includeParentHistory, parentSummaryMaxTokens } = config.subagentContext;
    const ref = call.agentCaller?.conversationRef;
    if (wanted === 'summary' && ref === undefined)
      throw new AppError(
        'invalid_params',
        'includeParentHistory: only an agent has a parent conversation; put what the sub-agent must know into task',
        {
          param: 'includeParentHistory',
        },
      );
    if ((wanted ?? includeParentHistory) === 'none' || ref === undefined) return undefined;
    const { total } = await deps.sessions.said({ conversationRef: ref, offset: 0, limit: 1 }, call).catch(noHistory);
    const { messages } = await deps.sessions
      .said({ conversationRef: ref, offset: Math.max(0, total - saidMessages), limit: saidMessages }, call)
      .catch(noHistory);
    let text = messages.map(({ role, content }) => `${role}: ${content}`).join('\n\n');
    while (countTokens(text) > parentSummaryMaxTokens) text = tailOf(text, Math.floor(text.length * 0.8));
    return text === '' ? undefined : text;
  }

  async function announcementOf(params: Params<'session.spawn'>, call: CallContext): Promise<RunSpec['announce']> {
    const { announceChannelType: type, announceChannelId: id } = params;
    const { agentCaller } = call;
    if (agentCaller !== undefined) {
      if (type !== undefined || id !== undefined)
        throw new AppError('denied', 'announceChannelType, announceChannelId: runs of an agent are announced in its own conversation', {
          param: 'announceChannelType',
        });
      return announceToCaller(agentCaller);
    }
    if (type === undefined && id === undefined) return toInbox;
    if (type === undefined || id === undefined)
      throw new AppError('invalid_params', 'announceChannelType, announceChannelId: expected both or neither', {
        param: type === undefined ? 'announceChannelType' : 'announceChannelId',
      });
    if (type !== 'gateway') throw new AppError('invalid_params', 'announceChannelType: expected gateway', { param: 'announceChannelType' });
    if (id === 'inbox') return toInbox;
    const target = await deps.sessions.existing({ conversationRef: id }, call);
    // Admins can see the conversations of others, but must not announce into them.
    if (target.principalId !== call.identity.principalId) throw new AppError('not_found', 'Conversation not found');
    return { to: 'conversation', target, runId: null };
  }
}

const noHistory = () => ({ messages: [], total: 0 });

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
