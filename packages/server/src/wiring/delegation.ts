import type { ModelWork } from '../features/access/budgets/api.ts';
import type { WorkAuthority } from '../features/access/tokens/api.ts';
import type { Agent, AgentsApi } from '../features/agents/agents/api.ts';
import type { ApprovalChats } from '../features/channels/approvals/api.ts';
import type { DeliveryApi, EndpointsApi } from '../features/channels/delivery/api.ts';
import { findNewest } from '../features/channels/outgoing/store.ts';
import { conversationTarget } from '../features/conversations/sessions/conversation.ts';
import type { TurnsApi } from '../features/conversations/turns/api.ts';
import type { AutonomyApi } from '../features/delegation/autonomy/api.ts';
import { createGraphs } from '../features/delegation/graph/graph.ts';
import { createOrchestrate } from '../features/delegation/orchestrate/orchestrate.ts';
import { createSessionSend } from '../features/delegation/session-send/session-send.ts';
import { createFindTarget } from '../features/delegation/session-send/targets.ts';
import type { StoppedRun, SubagentsApi } from '../features/delegation/subagents/api.ts';
import { boundsOf, readOptions } from '../features/delegation/subagents/requests/options.ts';
import { isEnded } from '../features/delegation/subagents/run/row.ts';
import { findChild } from '../features/delegation/subagents/status/child-store.ts';
import { createSubagents } from '../features/delegation/subagents/subagents.ts';
import type { MediaLibrary } from '../features/environment/media/api.ts';
import { limitsFor } from '../features/environment/shell/config.ts';
import { maskedInside, workspaceInside, workspaceMounts } from '../features/environment/shell/workspace-mounts.ts';
import type { DurableWork } from '../features/unattended/durable/api.ts';
import type { InboxApi } from '../features/unattended/inbox/api.ts';
import { AppError } from '../kernel/app-error.ts';
import type { IdentityOf } from '../kernel/call-context.ts';
import { systemClock } from '../kernel/clock.ts';
import type { FenceText } from '../runtime/fence.ts';
import type { Tool } from '../runtime/tool.ts';
import { acceptRun, beginRun } from '../transactions/accept-run.ts';
import { deliverAnnouncement, takeAnnouncement } from '../transactions/deliver-announcements.ts';
import { endWorkWithMessage } from '../transactions/end-interrupted-turn.ts';
import { endRunWithTurn, finishRun, killRuns } from '../transactions/end-run.ts';
import { acceptGraph, closeGraph, graphsOfRoot, moveGraphNodes } from '../transactions/graph-work.ts';
import { beginScript, endScript } from '../transactions/orchestrate-work.ts';
import { acceptSend, failSendWork, keepAnswer } from '../transactions/send-work.ts';
import { injectSteer, replaceRun } from '../transactions/steer-run.ts';
import { waitingOfRun, waitingRunsOf } from '../transactions/waiting-runs.ts';
import type { Assembly } from './assembly.ts';
import type { Conversations } from './conversations.ts';
import type { Foundation } from './foundation.ts';
import type { Tooling } from './tooling.ts';

export interface DelegationWiring {
  readonly agents: AgentsApi;
  readonly autonomy: AutonomyApi;
  readonly durable: DurableWork;
  readonly inbox: InboxApi;
  readonly endpoints: EndpointsApi;
  readonly delivery: DeliveryApi;
  readonly chats: ApprovalChats;
  readonly turns: TurnsApi;
  readonly toolsOf: (agent: Agent) => readonly Tool[];
  readonly foundation: Pick<Foundation, 'lifetime'>;
  readonly tooling: Pick<Tooling, 'workspace' | 'openedJail'>;
  readonly conversations: Pick<Conversations, 'sessions'>;
  readonly knowsModel: (name: string) => boolean;
  readonly fence: FenceText;
  /** Returns the current identity of a token; undefined when it is gone. */
  readonly identityOf: IdentityOf;
  readonly authority: WorkAuthority;
  readonly work: ModelWork;
  readonly media: MediaLibrary;
  /** Called when runs were stopped, once that is stored. */
  readonly runsStopped: (runs: readonly StoppedRun[]) => Promise<void>;
}
export type Delegation = ReturnType<typeof wireDelegation>;

/** Wires everything with which agents work together: sub-agents, graphs, messages between conversations, scripts that call tools. */
export function wireDelegation(assembly: Assembly, wired: DelegationWiring) {
  const { building } = assembly;
  const deps = toDeps(wired);
  const subagents = building.use(wireSubagents(assembly, deps));
  const graphs = building.use(wireGraphs(assembly, { ...deps, subagents: subagents.api }));
  const sessionSend = wireSessionSend(assembly, deps);
  const orchestrate = wireOrchestrate(assembly, deps);
  subagents.api.onStopped(wired.runsStopped);
  const fixed: readonly Tool[] = [...subagents.tools, ...graphs.tools, ...sessionSend.tools];
  let scriptTools = orchestrate.tools();
  let tools = [...fixed, ...scriptTools];
  return {
    methods: { ...subagents.methods, ...graphs.methods, ...sessionSend.methods },
    /** Returns the same array until it changes. */
    tools(): readonly Tool[] {
      if (orchestrate.tools() !== scriptTools) {
        scriptTools = orchestrate.tools();
        tools = [...fixed, ...scriptTools];
      }
      return tools;
    },
    scriptCalls: orchestrate.calls,
    /** Called when the daemon stops: nothing new is accepted from here on. */
    stopping(): void {
      subagents.stopping();
      graphs.stopping();
    },
  };
}

type Deps = ReturnType<typeof toDeps>;

/** Returns what the parts of delegation use of the other areas. */
function toDeps({ foundation, tooling: { workspace, openedJail }, conversations: { sessions }, toolsOf, ...deps }: DelegationWiring) {
  return {
    ...deps,
    bootId: foundation.lifetime.bootId,
    sessions: sessions.api,
    isTainted: sessions.isTainted,
    noticeMessages: sessions.noticeMessages,
    toolsOf(agentId: string): readonly Tool[] {
      const agent = deps.agents.find(agentId);
      return agent === undefined ? [] : toolsOf(agent);
    },
    jail: openedJail,
    capacity: workspace.capacity,
    taints: workspace.taints,
  };
}

function wireSubagents({ live, core }: Assembly, deps: Deps) {
  return createSubagents({
    ...deps,
    ...core('subagents'),
    config: live(({ security }) => security.agentToAgent),
    conversationOf: conversationTarget,
    operations: {
      accept: acceptRun,
      begin: beginRun,
      finish: finishRun,
      endWithTurn: endRunWithTurn,
      kill: killRuns,
      inject: injectSteer,
      replace: replaceRun,
      takeAnnouncement,
      deliverAnnouncement,
      waitingOf: waitingRunsOf,
      waitingOfRun,
    },
  });
}

function wireGraphs({ live, core }: Assembly, deps: Deps & { readonly subagents: SubagentsApi }) {
  const config = live(({ security }) => security.agentToAgent);
  return createGraphs({
    ...deps,
    ...core('graphs'),
    concurrency: () => config.current.graphMaxConcurrency,
    maxDepth: () => config.current.subagentContext.maxSpawnDepth,
    assertCanDelegate({ agentCaller }) {
      if (agentCaller !== undefined && !config.current.enabled)
        throw new AppError('denied', 'Agents may not start other agents (security.agentToAgent.enabled)');
      const refusal = deps.subagents.refusal();
      if (refusal !== undefined) throw refusal;
    },
    assertCanStart(agentId, { agentCaller }) {
      const { allowAgents } = config.current;
      if (agentCaller === undefined || agentId === agentCaller.agentId || allowAgents.length === 0 || allowAgents.includes(agentId)) return;
      throw new AppError('denied', `Sub-agents of agent ${agentId} are not allowed here`);
    },
    operations: { accept: acceptGraph, move: moveGraphNodes, close: closeGraph, endWithMessage: endWorkWithMessage, ofRoot: graphsOfRoot },
  });
}

function wireSessionSend({ live, db, bus, clock }: Assembly, deps: Deps) {
  return createSessionSend({
    ...deps,
    db,
    bus,
    clock,
    policy: live(({ security }) => security.agentToAgent),
    acceptSend,
    keepAnswer,
    failSendWork,
    findTarget: createFindTarget({
      sessions: deps.sessions,
      async childOf(about) {
        const run = await db.read(findChild, about);
        if (run === undefined) return undefined;
        const { conversationRef: ref, sessionKey, agentId, principalId } = run;
        return { ref, sessionKey, agentId, principalId, isStarting: !isEnded(run), bounds: boundsOf(readOptions(run.optionsJson)) };
      },
    }),
    isPending: deps.sessions.isPending,
    async chatOf(conversationRef) {
      const newest = await db.read(findNewest, { conversationRef });
      if (newest === undefined) return undefined;
      const { id: _id, ...chat } = newest;
      return chat;
    },
    ownOf: deps.sessions.own,
  });
}

function wireOrchestrate({ options, live, db, bus, clock }: Assembly, deps: Deps) {
  const { home } = options;
  const exec = live((config) => config.exec);
  const rates = live(({ autonomy }) => autonomy.guards.rate);
  return createOrchestrate({
    ...deps,
    db,
    bus,
    clock,
    isEnabled: () => exec.current.enabled,
    rates: () => rates.current,
    key: options.installKey.derive('capability'),
    socketFile: home.capabilitySocketFile,
    processClock: systemClock,
    workspace: { inside: workspaceInside, masked: maskedInside, mounts: workspaceMounts },
    limitsOf: (agent) => limitsFor(exec.current, agent.config.exec),
    beginScript,
    endScript,
  });
}
