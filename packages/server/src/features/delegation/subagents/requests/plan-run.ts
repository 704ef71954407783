import type { Capability, ToolPolicy, TurnOrigin } from '@gatehouse/contract';
import type { ChatEndpoint, ToolBounds } from '../../../../kernel/call-context.ts';
import { newId } from '../../../../kernel/ids.ts';
import type { Agent } from '../../../agents/agents/api.ts';
import type { AutonomyApi, NewLease, RootEntry } from '../../autonomy/api.ts';
import type { NewWork } from '../../../unattended/durable/api.ts';
import type { ConversationTarget } from '../../../conversations/sessions/api.ts';
import type { AgentToAgentConfig } from '../config.ts';
import type { Live } from '../../../../kernel/config/live.ts';
import { toTargetJson } from '../completion/announce-target.ts';
import { readOptions, type RunOptions } from './options.ts';
import type { NewRunRow, RunRow, AnnounceTo } from '../run/row.ts';
import { runWork } from './work-kind.ts';

/** What to run, for any requester. */
export interface RunSpec {
  readonly agent: Agent;
  readonly principalId: string;
  readonly tokenId: string;
  readonly rootRunId: string;
  readonly parentLeaseId: string | null;
  readonly parentRunId: string | null;
  readonly depth: number;
  /** The task as it is shown; `message` is what the agent receives. */
  readonly task: string;
  readonly message: string;
  readonly model?: string | undefined;
  readonly maxSteps?: number | undefined;
  readonly timeoutMs?: number | undefined;
  readonly policies: readonly ToolPolicy[];
  /** The requesting turn; origin `rpc` for a token. */
  readonly askedBy: { readonly origin: TurnOrigin; readonly bounds?: ToolBounds | undefined; readonly agent?: Agent | undefined };
  /** What the requester may start. */
  readonly caps: ReadonlySet<Capability>;
  readonly requester: { readonly key: string; readonly ref: string | null; readonly agentId: string | null; readonly counted: boolean };
  readonly announce: {
    readonly to: AnnounceTo;
    readonly target: ConversationTarget | null;
    readonly runId: string | null;
    /** The chat that is notified, instead of the inbox or with the conversation. */
    readonly endpoint?: ChatEndpoint | undefined;
  };
  readonly graph?: { readonly graphId: string; readonly nodeId: string } | undefined;
  /** The conversation of an earlier run that this one continues. */
  readonly conversation?: { readonly ref: string; readonly sessionKey: string } | undefined;
  readonly steeredAtMs?: number | undefined;
}

export interface RunPlan {
  readonly row: NewRunRow;
  readonly work: NewWork;
  readonly lease: NewLease;
  readonly root: RootEntry;
}

export interface PlanDeps {
  readonly config: Live<AgentToAgentConfig>;
  readonly autonomy: Pick<AutonomyApi, 'standing' | 'leaseUntilMs'>;
  readonly conversationOf: (agentId: string, principalId: string, key: { userId: string; channelId: string; peerId: string }) => ConversationTarget;
  readonly now: () => number;
}

/** Plans the rows of a new run. */
export function planRun(deps: PlanDeps, wish: RunSpec): RunPlan {
  const { agent, principalId, rootRunId, askedBy, requester, announce } = wish;
  const atMs = deps.now();
  const id = newId('sr');
  const leaseId = newId('ls');
  const workId = newId('wi');
  const target = wish.conversation ?? deps.conversationOf(agent.id, principalId, { userId: 'subagent', channelId: 'gateway', peerId: id });
  const { maxRunTimeoutMs, perStepTimeoutMs } = deps.config.current.subagentContext;
  const maxSteps = wish.maxSteps ?? deps.config.current.subAgentMaxSteps;
  const own = deps.autonomy.standing(agent, undefined);
  const caps = [...wish.caps].filter((name) => own.caps.has(name));
  const options: RunOptions = {
    message: wish.message,
    ...(wish.model !== undefined && { model: wish.model }),
    maxSteps,
    timeoutMs: Math.min(wish.timeoutMs ?? Infinity, maxSteps * perStepTimeoutMs, maxRunTimeoutMs),
    policies: [...wish.policies],
    caps,
    parentLeaseId: wish.parentLeaseId,
    asked: {
      origin: askedBy.origin,
      agentId: askedBy.agent?.id ?? null,
      policies: [...(askedBy.bounds?.policies ?? [])],
      agents: [...(askedBy.bounds?.agents ?? [])],
    },
  };
  return {
    row: {
      id,
      rootRunId,
      leaseId,
      parentRunId: wish.parentRunId,
      depth: wish.depth,
      agentId: agent.id,
      principalId,
      tokenId: wish.tokenId,
      requesterKey: requester.key,
      requesterRef: requester.ref,
      requesterAgentId: requester.agentId,
      counted: Number(requester.counted),
      conversationRef: target.ref,
      sessionKey: target.sessionKey,
      task: wish.task,
      optionsJson: JSON.stringify(options),
      graphId: wish.graph?.graphId ?? null,
      nodeId: wish.graph?.nodeId ?? null,
      workId,
      queuedAtMs: atMs,
      announceTo: announce.to,
      announceRef: announce.target?.ref ?? null,
      announceTargetJson: toTargetJson(announce.target, announce.endpoint),
      announceRunId: announce.runId,
      steeredAtMs: wish.steeredAtMs ?? null,
    },
    work: { id: workId, kind: runWork, key: id, digest: '', agentId: agent.id, payload: { runId: id }, atMs },
    lease: {
      id: leaseId,
      rootRunId,
      parentLeaseId: wish.parentLeaseId,
      runId: id,
      agentId: agent.id,
      principalId,
      caps,
      issuedAtMs: atMs,
      expiresAtMs: deps.autonomy.leaseUntilMs(),
      bearerDigest: null,
      bootId: '',
    },
    root: {
      rootRunId,
      kind: 'run',
      agentId: askedBy.agent?.id ?? agent.id,
      principalId,
      conversationRef: requester.ref,
      origin: askedBy.origin,
      profile: own.profile,
      atMs,
    },
  };
}

/** Plans a run that replaces another one with a different task, under the same limits. */
export function planReplacement(deps: PlanDeps, row: RunRow, { task, message }: { readonly task: string; readonly message: string }): RunPlan {
  const atMs = deps.now();
  const id = newId('sr');
  const leaseId = newId('ls');
  const workId = newId('wi');
  const options = readOptions(row.optionsJson);
  const { agentId, principalId, rootRunId } = row;
  const target = deps.conversationOf(agentId, principalId, { userId: 'subagent', channelId: 'gateway', peerId: id });
  return {
    row: {
      ...row,
      id,
      leaseId,
      workId,
      task,
      conversationRef: target.ref,
      sessionKey: target.sessionKey,
      optionsJson: JSON.stringify({ ...options, message }),
      queuedAtMs: atMs,
      steeredAtMs: atMs,
    },
    work: { id: workId, kind: runWork, key: id, digest: '', agentId, payload: { runId: id }, atMs },
    lease: {
      id: leaseId,
      rootRunId,
      parentLeaseId: options.parentLeaseId,
      runId: id,
      agentId,
      principalId,
      caps: options.caps,
      issuedAtMs: atMs,
      expiresAtMs: deps.autonomy.leaseUntilMs(),
      bearerDigest: null,
      bootId: '',
    },
    // The root already exists: only its first work writes the other fields.
    root: {
      rootRunId,
      kind: 'run',
      agentId,
      principalId,
      conversationRef: row.requesterRef,
      origin: options.asked.origin,
      profile: 'standard',
      atMs,
    },
  };
}
