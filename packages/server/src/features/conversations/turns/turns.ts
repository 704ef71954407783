import type { AnswerEffort, MessageAttachment } from '@gatehouse/contract';
import { AppError } from '../../../kernel/app-error.ts';
import { nextId } from '../../../kernel/ids.ts';
import type { ModelInfo } from '../../../llm/model.ts';
import type { Models } from '../../../llm/models.ts';
import type { BackgroundAuthority } from '../../../runtime/background.ts';
import type { WorkAuthority } from '../../access/tokens/api.ts';
import type { Agent, AgentsApi } from '../../agents/agents/api.ts';
import type { DocumentsApi } from '../../environment/documents/api.ts';
import type { MediaApi } from '../../environment/media/api.ts';
import type { RecallApi } from '../../knowledge/memory/api.ts';
import type { SkillsApi } from '../../knowledge/skills/api.ts';
import type { SessionsApi } from '../sessions/api.ts';
import type { Alongside, Reenter, TurnsApi } from './api.ts';
import { createDurableTurns, type DurableTurnsDeps } from './durable/durable-turns.ts';
import { createAdmissions } from './lanes/admission.ts';
import { createRunningTurns, type RunningTurns } from './lanes/running-turns.ts';
import { keepTurnMessage } from './lanes/turn-message-store.ts';
import { createTurnEntrance } from './lanes/turn-entrance.ts';
import type { TurnLanes } from './lanes/turn-lanes.ts';
import { createAttachments, modelsTaking } from './messages/attachments.ts';
import { modelsFor, wantedModel } from './preparation/resolve-target.ts';
import { type CompleteDeps, createCompletions } from './running/complete.ts';
import { type ConverseDeps, createConverse } from './running/converse.ts';
import { createTrials } from './running/trials.ts';
import { createTurnRunner, type TurnRunnerDeps } from './running/turn-runner.ts';

export interface TurnsDeps extends TurnRunnerDeps, ConverseDeps, CompleteDeps, DurableTurnsDeps {
  readonly memory: RecallApi;
  readonly skills: Pick<SkillsApi, 'inject' | 'ended'>;
  readonly agents: AgentsApi;
  readonly models: Models;
  readonly sessions: Pick<SessionsApi, 'target'>;
  readonly media: Pick<MediaApi, 'find' | 'read'>;
  readonly documents: DocumentsApi;
  readonly lanes: TurnLanes;
  readonly authority: Pick<WorkAuthority, 'assertCovers'>;
  /** Why no turn may run at all after repeated crashes; undefined normally. */
  readonly unavailableReason: string | undefined;
}

/** Permissions of a requested turn, which starts a chain of background turns. */
const attendedAuthority: BackgroundAuthority = { chain: 0 };

export interface Turns extends RunningTurns {
  readonly api: TurnsApi;
  readonly reenter: Reenter;
}

/** Turns of all kinds: each enters the lane of its conversation, is prepared there, runs, and is committed. */
export function createTurns(deps: TurnsDeps): Turns {
  const { agents, lanes } = deps;
  const admissions = createAdmissions();
  const entrance = createTurnEntrance(admissions, lanes, deps.unavailableReason);
  const runner = createTurnRunner(deps);
  const attachments = createAttachments(deps);
  const converse = createConverse(deps, attachments, runner);
  const running = createRunningTurns(admissions);

  /** Fallbacks may have no choice. */
  function assertOffers([model]: readonly ModelInfo[], effort: AnswerEffort | undefined): void {
    if (model === undefined || effort === undefined || deps.models.effortsOf(model).includes(effort)) return;
    throw new AppError('invalid_params', `effort: the model ${model.provider}/${model.modelId} offers no choice of it`, { param: 'effort' });
  }

  const execute: TurnsApi['execute'] = async (
    { message, address, origin = 'rpc', model, effort, locale, attachments: ids = [], alongside },
    call,
    sink,
  ) => {
    entrance.assertOpen();
    const target = await deps.sessions.target(address, call);
    const named = agents.usable(target.agentId, call);
    const attached = ids.length === 0 ? [] : await attachments.find(ids, call);
    const modelsOf = (agent: Agent) =>
      modelsTaking(modelsFor(agent, deps.models, wantedModel(deps.models, model)), attached, deps.models.unsupported);
    // Checked before waiting: no model may support the attachments, or have the requested name.
    if (attached.length > 0 || model !== undefined || effort !== undefined) assertOffers(modelsOf(named), effort);
    return entrance.enter({ target, agent: named, kept: true }, call, async (admitted) => {
      // Reload after waiting, because the agent may have been suspended, deleted or changed.
      const agent = agents.usable(target.agentId, call);
      const models = modelsOf(agent);
      assertOffers(models, effort);
      await deps.applyResetPolicy(target, agent);
      const question = { text: message, attachments: attached };
      return converse({ target, agent, models, question, origin, locale, effort, background: attendedAuthority, alongside }, admitted, sink);
    });
  };

  const steer: TurnsApi['steer'] = async ({ message, address }, call) => {
    const target = await deps.sessions.target(address, call);
    agents.usable(target.agentId, call);
    const turn = running.taking(target.ref);
    if (turn?.running === undefined)
      throw new AppError('precondition_failed', 'No turn in this conversation takes messages now; send it as the next one');
    deps.authority.assertCovers({ ...turn, principalId: target.principalId }, call, 'message');
    const { agentId, principalId, ref: conversationRef } = target;
    deps.inspect(message, { source: 'user_input', agentId, principalId, conversationRef, traceId: call.traceId });
    const { turnId } = turn.running.calling;
    const id = nextId('tm', deps.clock.now());
    await turn.messages.offer(message, call.signal);
    const { sessionKey } = target;
    const of = { id, turnId, bootId: deps.bootId, conversationRef, sessionKey, agentId, principalId };
    await deps.db.write(keepTurnMessage, { ...of, text: message, atMs: deps.clock.now() });
    return target;
  };

  const reenter: Reenter = async ({ target, begunBy, chain, rootRunId, take }, call) => {
    entrance.assertOpen();
    return entrance.enter({ target, agent: agents.usable(target.agentId, call), kept: true }, call, async (admitted) => {
      const agent = agents.usable(target.agentId, call);
      const models = modelsFor(agent, deps.models);
      const results = take();
      if (results === undefined) return undefined;
      const { taskIds, text } = results;
      const alongside: Alongside = {
        opened: () => [deps.background.markCall(taskIds, 'telling')],
        ended: () => [deps.background.markCall(taskIds, 'told')],
      };
      const background = { begunBy, chain, rootRunId };
      return converse({ target, agent, models, question: { text }, origin: 'background', background, alongside }, admitted, undefined);
    });
  };

  const attach: TurnsApi['attach'] = async (agentId, mediaIds, call) => {
    const models = modelsFor(agents.usable(agentId, call), deps.models);
    const accepted: MessageAttachment[] = [];
    const refused: { mediaId: string; reason: string }[] = [];
    for (const mediaId of mediaIds) {
      try {
        const together = await attachments.find([...accepted.map((one) => one.mediaId), mediaId], call);
        modelsTaking(models, together, deps.models.unsupported);
        accepted.splice(0, accepted.length, ...together);
      } catch (error) {
        if (!(error instanceof AppError) || error.code !== 'invalid_params') throw error;
        refused.push({ mediaId, reason: error.message });
      }
    }
    return { attachments: accepted, refused };
  };

  return {
    api: {
      execute,
      steer,
      attach,
      ...createCompletions(deps, entrance, runner),
      ...createDurableTurns(deps, entrance, converse),
      ...createTrials(deps, entrance, runner, converse),
      counts: () => ({ running: runner.running(), queued: lanes.queued() }),
    },
    reenter,
    ...running,
  };
}
