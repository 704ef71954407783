import type { AnswerEffort, EventPayload } from '@gatehouse/contract';
import type { CallContext, PartOfRoot } from '../../../../kernel/call-context.ts';
import { newId } from '../../../../kernel/ids.ts';
import type { ModelInfo, ModelMessage } from '../../../../llm/model.ts';
import type { Models } from '../../../../llm/models.ts';
import type { FenceText } from '../../../../runtime/fence.ts';
import { refuseTool } from '../../../../runtime/tool-policy.ts';
import type { Tool } from '../../../../runtime/tool.ts';
import type { TurnSink } from '../../../../runtime/turn.ts';
import type { Agent } from '../../../agents/agents/api.ts';
import type { RecallApi } from '../../../knowledge/memory/api.ts';
import type { SkillsApi } from '../../../knowledge/skills/api.ts';
import type { ContextApi, ContextOf, PreparedContext } from '../../context/api.ts';
import type { TurnOutcome } from '../api.ts';
import type { Admitted } from '../lanes/admission.ts';
import type { Attachments } from '../messages/attachments.ts';
import { fittingModels, mediaIn } from '../messages/media-support.ts';
import { lastExchanges } from '../messages/last-exchanges.ts';
import type { Preparation } from '../preparation/preparation.ts';
import { partOfTurn, type PreparedTurn } from './turn-input.ts';
import type { TurnRunner } from './turn-runner.ts';

/** Inspects untrusted text and announces suspected injections; never changes the text. */
export type InspectText = (
  text: string,
  about: {
    readonly source: EventPayload<'security:injection_detected'>['source'];
    readonly agentId: string;
    readonly principalId: string;
    readonly conversationRef: string;
    readonly traceId: string;
  },
) => void;

export interface ConverseDeps {
  readonly models: Pick<Models, 'unsupported'>;
  readonly preparation: Preparation;
  /** Checks whether files of the prompt have changed; usually returns undefined, as there is nothing to wait for. */
  readonly refreshPrompt: (agent: Agent) => Promise<void> | undefined;
  readonly memory: Pick<RecallApi, 'recall'>;
  readonly skills: Pick<SkillsApi, 'inject'>;
  readonly context: Pick<ContextApi, 'prepare' | 'afterTurn'>;
  /** Fences text that did not come from the operator, deterministically. */
  readonly fence: FenceText;
  readonly inspect: InspectText;
  /** Signals that messages were stored and must be indexed. */
  readonly noticeMessages: () => void;
}

/** A turn of a stored conversation before the conversation is read. */
export interface ConversationTurn extends Pick<
  PreparedTurn,
  'target' | 'agent' | 'origin' | 'question' | 'background' | 'alongside' | 'durable' | 'synthetic' | 'isolated'
> {
  readonly models: readonly ModelInfo[];
  readonly locale?: string | undefined;
  readonly effort?: AnswerEffort | undefined;
}

/** Runs a turn whose messages are stored; the caller must hold the conversation's lane. */
export type Converse = (turn: ConversationTurn, admitted: Admitted, sink: TurnSink | undefined) => Promise<TurnOutcome>;

/** Estimates the tokens that a turn adds; the next turn counts them. */
const charactersPerToken = 4;

const emptyContext: PreparedContext = { messages: [], attached: [], hasNotes: false, tokens: 0, behind: false, tainted: false };

export function createConverse(deps: ConverseDeps, attachments: Attachments, runner: Pick<TurnRunner, 'run'>): Converse {
  const { preparation } = deps;

  return async (turn, admitted, sink) => {
    const { target, agent, origin, models, durable } = turn;
    const message = turn.question.text;
    const tools = toolsOf(turn);
    const refreshing = deps.refreshPrompt(agent);
    if (refreshing !== undefined) await refreshing;
    const attended = origin !== 'background' && durable === undefined;
    const light = durable?.turn.lightContext === true;
    const system = preparation.systemPrompt(agent, tools, { origin: authorityOf(turn), attended, locale: turn.locale, light });
    const capacity = preparation.historyCapacity(agent, models, tools, system);
    const about = { ref: target.ref, agent, principalId: target.principalId, capacity };
    const id = durable?.start.id ?? newId('tn');
    const { past, remembered, recalls, skills } = await recollect(
      turn,
      { ...about, part: partOfTurn(turn, durable?.start ?? { id, traceId: admitted.call.traceId }) },
      admitted.call,
    );
    const own = turn.question.attachments ?? [];
    const input = models[0]?.input ?? ['text'];
    const { call } = admitted;
    const history = past.attached.length === 0 ? past.messages : await attachments.restore(past.messages, past.attached, { input, own, call });
    const { text, asked } = await compose(turn, past.recalled, { input, call });
    const outcome = await runner.run(
      {
        ...turn,
        id,
        ask: {
          models: past.attached.length === 0 ? models : fittingModels(models, wantedBy(history), deps.models.unsupported),
          tools,
          system,
          ...(turn.effort !== undefined && { options: { depth: turn.effort } }),
        },
        history,
        brought: [asked],
        question: { text, attachments: own },
        remembered,
        recalls,
        skills,
        kept: true,
        taintedBefore: past.tainted,
      },
      admitted,
      sink,
    );
    deps.noticeMessages();
    const tokens = past.tokens + Math.ceil((message.length + outcome.text.length) / charactersPerToken);
    if (turn.isolated !== true) deps.context.afterTurn({ ...about, tokens, behind: past.behind });
    return outcome;
  };

  function toolsOf(turn: ConversationTurn): readonly Tool[] {
    const { agent, durable } = turn;
    const authority = authorityOf(turn);
    const { toolPolicy, toolBounds, extraTools = [] } = durable?.turn ?? {};
    const own = preparation.toolsFor(agent, authority, toolPolicy, toolBounds);
    const extra = extraTools.filter((tool) => refuseTool(tool, agent.config, authority) === undefined);
    // The same list while nothing is added: caches are keyed by it.
    return extra.length === 0 ? own : [...own, ...extra];
  }

  /** Reads the conversation, and what memory and skills have about the question. Background turns ask none. */
  async function recollect(
    turn: ConversationTurn,
    about: ContextOf & { readonly capacity: number; readonly part: PartOfRoot },
    { signal }: CallContext,
  ) {
    const { target, agent, origin, durable } = turn;
    const question = turn.question.text;
    const authority = authorityOf(turn);
    const isAsked = origin !== 'background' && durable?.turn.lightContext !== true;
    const { capacity: room, principalId, part } = about;
    const remembering = isAsked
      ? deps.memory.recall(
          { agentId: agent.id, principalId, conversationRef: target.ref, part, question, room, signal, uncounted: turn.isolated },
          agent.config,
          authority,
        )
      : undefined;
    const skills = isAsked ? deps.skills.inject({ agent, question, origin: authority, room }) : undefined;
    const limit = durable?.turn.historyTurns;
    const all = limit === 0 ? emptyContext : await deps.context.prepare({ ...about, question });
    const past = limit === undefined ? all : lastExchanges(all, limit);
    return { past, skills, recalls: remembering !== undefined, remembered: remembering === undefined ? undefined : await remembering };
  }

  /** Returns the question as it is stored, and the message that asks it. */
  async function compose(turn: ConversationTurn, recalled: string | undefined, { input, call }: { input: ModelInfo['input']; call: CallContext }) {
    const { identity, traceId } = call;
    const { text: message, attachments: attached = [] } = turn.question;
    const about = { agentId: turn.agent.id, principalId: identity.principalId, conversationRef: turn.target.ref, traceId };
    if (turn.origin !== 'background') deps.inspect(message, { source: 'user_input', ...about });
    const inspectFile = (text: string) => deps.inspect(text, { source: 'external_content', ...about });
    const outside = turn.durable?.turn.fenced;
    if (outside !== undefined) inspectFile(outside.text);
    const text =
      outside === undefined ? message : `${message}\n\n${deps.fence(outside.text, { source: outside.source, clean: outside.clean === true })}`;
    // Excerpts are sent with the question but not stored, so that the prefix stays the same across turns.
    const content = recalled === undefined ? text : `${recalled}\n\n${text}`;
    const asked: ModelMessage =
      attached.length === 0 ? { role: 'user', content } : await attachments.attach(content, attached, { input, inspect: inspectFile, call });
    return { text, asked };
  }
}

/** Returns the origin under whose authority a turn acts. */
const authorityOf = ({ origin, background, durable }: ConversationTurn) => background?.begunBy ?? durable?.turn.authority ?? origin;

const wantedBy = (messages: readonly ModelMessage[]) => ({ media: mediaIn(messages), mediaParam: 'attachments' });
