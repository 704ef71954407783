import type { Budgets } from '../features/access/budgets/budgets.ts';
import type { WorkAuthority } from '../features/access/tokens/api.ts';
import type { AgentsApi } from '../features/agents/agents/api.ts';
import { createTurnLanes } from '../features/conversations/turns/lanes/turn-lanes.ts';
import type { TurnRunnerDeps } from '../features/conversations/turns/running/turn-runner.ts';
import { createTurns, type Turns } from '../features/conversations/turns/turns.ts';
import type { Autonomy } from '../features/delegation/autonomy/autonomy.ts';
import { createBackground } from '../features/environment/background/background.ts';
import type { DocumentsApi } from '../features/environment/documents/api.ts';
import type { MediaApi } from '../features/environment/media/api.ts';
import type { RecallApi } from '../features/knowledge/memory/api.ts';
import type { TracesApi } from '../features/operations/traces/api.ts';
import { suspendWork } from '../features/unattended/durable/store.ts';
import type { IdentityOf } from '../kernel/call-context.ts';
import type { Lanes } from '../kernel/lane.ts';
import type { Models } from '../llm/models.ts';
import type { Fence } from '../runtime/fence.ts';
import { createInjectionMonitor } from '../runtime/injection-monitor.ts';
import { createRunTurn } from '../runtime/run-turn.ts';
import { createToolActivity } from '../runtime/tool-activity.ts';
import { checkpointTurn, commitDurableTurn, openDurableTurn, reserveForDurable } from '../transactions/commit-durable-turn.ts';
import { commitTurn, openTurn } from '../transactions/commit-turn.ts';
import type { Assembly } from './assembly.ts';
import type { Conversations } from './conversations.ts';
import type { Foundation } from './foundation.ts';
import { Late } from './late.ts';
import type { Stops } from './stops.ts';
import type { Tooling } from './tooling.ts';
import type { Unattended } from './unattended.ts';

export interface TurnsWiring {
  readonly foundation: Pick<Foundation, 'lifetime' | 'metrics' | 'traces'>;
  readonly agents: AgentsApi;
  readonly identityOf: IdentityOf;
  readonly authority: WorkAuthority;
  readonly models: Models;
  readonly generate: Models['generate'];
  readonly media: MediaApi;
  readonly documents: DocumentsApi;
  readonly lanes: Lanes;
  readonly autonomy: Pick<Autonomy, 'turns'>;
  readonly budgets: Pick<Budgets, 'budgetOf'>;
  readonly openCalls: TurnRunnerDeps['openCalls'];
  readonly fence: Fence;
  readonly memory: RecallApi;
  readonly tooling: Pick<Tooling, 'skills' | 'workspace' | 'approvals' | 'shell'>;
  readonly conversations: Conversations;
  readonly unattended: Late<Unattended>;
  readonly stops: Late<Stops>;
  readonly traces: TracesApi;
}

/** Wires the agent loop, the turns of conversations and the calls that outlive them, with every turn metered and traced. */
export async function wireTurns({ building, options, bootId, onClaimed, live, core, db, bus, clock }: Assembly, deps: TurnsWiring) {
  const { log, redactor } = options;
  const compat = live(({ gateway }) => gateway.compat);
  const { agents, models, lanes, fence } = deps;
  const { lifetime, metrics, traces } = deps.foundation;
  const { skills, workspace, approvals, shell } = deps.tooling;
  const { preparation, context, sessions, keptLanes } = deps.conversations;
  const turnsLater = new Late<Turns>('turns');
  const background = building.use(
    await createBackground({
      ...core('background'),
      bootId,
      agents,
      identityOf: deps.identityOf,
      reenter: (request, call) => turnsLater.value.reenter(request, call),
      commands: shell.background,
      screens: shell.screens,
    }),
  );
  onClaimed(background.recover);
  const { inspect } = createInjectionMonitor({ bus, clock });
  const runTurn = metrics.runTurn(
    createRunTurn({
      models: { generate: deps.generate, onRecovered: models.onRecovered },
      clock,
      fence,
      background: background.api,
      activity: createToolActivity({ bus, clock, hide: redactor.hide }),
      gate: approvals.gate,
      log: log.module('turns'),
      inspect,
      hideSecrets: redactor.hide,
      keptFile: workspace.taints.mark,
    }),
  );
  const turns = createTurns({
    db,
    bus,
    clock,
    bootId,
    media: deps.media,
    documents: deps.documents,
    agents,
    models,
    sessions: sessions.api,
    authority: deps.authority,
    applyResetPolicy: sessions.applyResetPolicy,
    noticeMessages: sessions.noticeMessages,
    runTurn,
    background: background.api,
    traces: deps.traces,
    openCalls: deps.openCalls,
    openTurn,
    commitTurn,
    openDurableTurn,
    checkpointTurn,
    reserveForDurable,
    commitDurableTurn,
    async parked(turn) {
      // Otherwise the deletion or reset that is next in the lane would wait until this turn has continued and ended.
      if (!approvals.isClearing(turn.target.ref)) keptLanes.keep(turn);
      await approvals.suspended(turn.approvalId);
    },
    autonomy: deps.autonomy.turns,
    budgetOf: deps.budgets.budgetOf,
    memory: deps.memory,
    skills: skills.api,
    lanes: createTurnLanes({
      lanes,
      keptLanes,
      entered: sessions.entered,
      inConversation: traces?.inConversation,
      resumeWaiting: (ref) => deps.unattended.value.durable.resumeWaiting({ kind: 'conversation', subject: ref }),
    }),
    suspendWork,
    continued: keptLanes.release,
    booking: (turn, sums) => deps.autonomy.turns.booking(turn, sums),
    turnEnded: (turn) => deps.stops.value.turnEnded(turn),
    context: context.api,
    preparation,
    refreshPrompt: workspace.api.refresh,
    fence: fence.wrap,
    inspect,
    v1Tools: () => compat.current.tools,
    modelAliases: () => compat.current.models,
    unavailableReason: lifetime.controlPlaneOnly
      ? 'The daemon crashed three times within five minutes and runs without agents; look at its log, then restart it'
      : undefined,
  });
  return { turns: turnsLater.set(turns), background };
}
