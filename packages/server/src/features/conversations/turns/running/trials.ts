import { AppError } from '../../../../kernel/app-error.ts';
import type { CallContext } from '../../../../kernel/call-context.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import { newId } from '../../../../kernel/ids.ts';
import type { ModelInfo, ModelMessage } from '../../../../llm/model.ts';
import type { Models } from '../../../../llm/models.ts';
import type { Agent, AgentsApi } from '../../../agents/agents/api.ts';
import type { ConversationTarget, SessionsApi } from '../../sessions/api.ts';
import type { Alongside, TrialOutcome, TrialTurn, TurnOutcome, TurnsApi } from '../api.ts';
import type { Admitted } from '../lanes/admission.ts';
import type { TurnEntrance } from '../lanes/turn-entrance.ts';
import { modelsTaking } from '../messages/attachments.ts';
import { modelsFor } from '../preparation/resolve-target.ts';
import type { Converse, ConverseDeps } from './converse.ts';
import { partOfTurn } from './turn-input.ts';
import type { TurnRunner } from './turn-runner.ts';

export interface TrialDeps extends Pick<ConverseDeps, 'preparation' | 'refreshPrompt' | 'memory' | 'skills'> {
  readonly agents: AgentsApi;
  readonly models: Pick<Models, 'resolve' | 'defaultModel' | 'unsupported'>;
  readonly sessions: Pick<SessionsApi, 'target'>;
  readonly clock: Clock;
}

type Run = (agent: Agent, admitted: Admitted, alongside: Alongside) => Promise<TurnOutcome>;

/** Creates the turns of evaluations and replays: marked as such from here on, and without effects outside of themselves. */
export function createTrials(
  deps: TrialDeps,
  entrance: TurnEntrance,
  runner: Pick<TurnRunner, 'run'>,
  converse: Converse,
): Pick<TurnsApi, 'evaluate' | 'replay'> {
  const { agents, clock, preparation } = deps;

  async function enter(target: ConversationTarget, kept: boolean, call: CallContext, run: Run): Promise<TrialOutcome> {
    entrance.assertOpen();
    const named = agents.usable(target.agentId, call);
    return entrance.enter({ target, agent: named, kept }, call, async (admitted) => {
      // Reload after waiting, because the agent may have been suspended, deleted or changed.
      const agent = agents.usable(target.agentId, call);
      let messages: readonly ModelMessage[] = [];
      const alongside: Alongside = {
        ended(_outcome, added) {
          messages = added;
          return [];
        },
      };
      const startedAt = clock.monotonic();
      const outcome = await run(agent, admitted, alongside);
      return { ...outcome, messages, latencyMs: Math.round(clock.monotonic() - startedAt) };
    });
  }

  /** Returns the named model alone: what a fallback answers says nothing about it. */
  function modelsOf(agent: Agent, name: string | undefined): readonly ModelInfo[] {
    if (name === undefined) return modelsFor(agent, deps.models);
    const model = deps.models.resolve(name);
    if (model === undefined) throw new AppError('precondition_failed', `No configured provider offers the model ${name}`, { param: 'model' });
    return [model];
  }

  /** Returns prompt, tools, memories and skills as a person would get them. */
  async function equip(
    agent: Agent,
    { system, message }: TrialTurn,
    { models, target, id }: { readonly models: readonly ModelInfo[]; readonly target: ConversationTarget; readonly id: string },
    call: CallContext,
  ) {
    const refreshing = deps.refreshPrompt(agent);
    if (refreshing !== undefined) await refreshing;
    const tools = preparation.toolsFor(agent, 'rpc');
    const prompt = preparation.systemPrompt(agent, tools, { origin: 'rpc', attended: true });
    const room = models[0]?.contextWindow ?? 0;
    const { ref: conversationRef, principalId } = target;
    const part = partOfTurn({ synthetic: true }, { id, traceId: call.traceId });
    const about = { agentId: agent.id, principalId, conversationRef, part, question: message, room, signal: call.signal, uncounted: true } as const;
    const remembered = await deps.memory.recall(about, agent.config, 'rpc');
    const skills = deps.skills.inject({ agent, question: message, origin: 'rpc', room });
    return { ask: { tools, system: system === undefined ? prompt : [...prompt, system] }, remembered, skills };
  }

  return {
    async evaluate(trial, call) {
      const { agentId, model, message, history } = trial;
      const key = { userId: 'gatehouse', channelId: 'evaluation', peerId: newId('ev') };
      const target = await deps.sessions.target({ agentId, sessionKey: key }, call);
      return enter(target, false, call, async (agent, admitted, alongside) => {
        const models = modelsOf(agent, model);
        const id = newId('tn');
        const equipped =
          trial.bare === true
            ? { ask: { tools: [], system: trial.system === undefined ? [] : [trial.system] } }
            : await equip(agent, trial, { models, target, id }, admitted.call);
        const marks = { synthetic: true, isolated: true, kept: false } as const;
        const asked = { history, brought: [{ role: 'user', content: message } as const], question: { text: message } };
        const turn = { id, target, agent, origin: 'rpc', alongside, ...asked, ...marks, ...equipped, ask: { models, ...equipped.ask } } as const;
        return runner.run(turn, admitted, undefined);
      });
    },

    replay: ({ target, model, question, origin }, call) =>
      enter(target, true, call, async (agent, admitted, alongside) => {
        const models = modelsTaking(modelsOf(agent, model), question.attachments, deps.models.unsupported);
        return converse({ target, agent, models, question, origin, alongside, synthetic: true, isolated: true }, admitted, undefined);
      }),
  };
}
