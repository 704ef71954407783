import type { AnswerEffort, ApiChatHistory, StoredMessage } from '@gatehouse/contract';
import { AppError } from '../../../../kernel/app-error.ts';
import type { CallContext } from '../../../../kernel/call-context.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import type { HandlersOf } from '../../../../kernel/handlers.ts';
import type { Lanes } from '../../../../kernel/lane.ts';
import type { Agent, AgentsApi } from '../../../agents/agents/api.ts';
import type { SessionsApi } from '../api.ts';
import { tenantId } from '../conversation.ts';
import { type Addressing, reachOf, reachWithin } from './reach.ts';
import { type ConversationRow, readMessages, readSaid } from '../store.ts';
import { toFeedback } from './past-turns/feedback.ts';
import { feedbackBetween } from './past-turns/feedback-store.ts';
import { dollars, identityOf, shownContent, toStoredMessage, toSummary } from './view.ts';

type ReadingMethods = HandlersOf<`session.${'status' | 'history' | 'export'}`>;

/** Page size of an export. */
const exportPage = 500;

export interface ReadingDeps {
  readonly db: Db;
  readonly agents: AgentsApi;
  readonly addressing: Addressing;
  /** Returns the primary model of an agent, as `provider/modelId`. */
  /** Returns the model of an agent, as `provider/model`, and what a caller may choose for it. */
  readonly modelOf: (agentId: string) => { readonly model: string; readonly efforts: AnswerEffort[] };
  readonly lanes: Pick<Lanes, 'of'>;
}

/** Shows one conversation: its state and its messages. */
export function createReading(deps: ReadingDeps): { readonly methods: ReadingMethods; readonly said: SessionsApi['said'] } {
  const { db, addressing } = deps;

  function reachableAgent(agentId: string, call: CallContext): Agent {
    const agent = deps.agents.find(agentId);
    if (agent === undefined || reachWithin(reachOf(call), agentId).agentIds?.length === 0)
      throw new AppError('not_found', `Agent not found: ${agentId}`, { param: 'agentId' });
    return agent;
  }

  async function said({ offset, limit, ...address }: Parameters<SessionsApi['said']>[0], call: CallContext): Promise<ApiChatHistory> {
    const { named, row } = await addressing.ownOrExisting(address, call);
    if (row === undefined) reachableAgent(named.agentId, call);
    const { rows, total } = row === undefined ? { rows: [], total: 0 } : await db.read(readSaid, { conversationId: row.id, offset, limit });
    const messages = rows.map(({ createdAtMs, ...row }) => ({ role: row.role, content: shownContent(row), timestamp: createdAtMs }));
    return { ...identityOf(named), messages, total, offset, limit, hasMore: offset + rows.length < total };
  }

  async function allMessages(row: ConversationRow): Promise<StoredMessage[]> {
    const messages: StoredMessage[] = [];
    for (let offset = 0; offset < row.messageCount; offset += exportPage) {
      const limit = Math.min(exportPage, row.messageCount - offset);
      messages.push(...(await db.read(readMessages, { conversationId: row.id, offset, limit })).map(toStoredMessage));
    }
    return messages;
  }

  const methods: ReadingMethods = {
    'session.status': async (address, call) => {
      const { named, row } = await addressing.ownOrExisting(address, call);
      const agent = reachableAgent(named.agentId, call);
      return {
        ...identityOf(named),
        ...deps.modelOf(agent.id),
        agentName: agent.config.name,
        tokensUsed: { totalTokens: row === undefined ? 0 : row.inputTokens + row.outputTokens, totalCost: dollars(row?.costNano ?? 0) },
        stepsExecuted: row?.stepCount ?? 0,
        maxSteps: agent.config.maxSteps,
        ...deps.lanes.of(named.ref),
      };
    },

    'session.history': async ({ offset, limit, ...address }, call) => {
      const row = await addressing.existing(address, call);
      const [messages, rated] = await Promise.all([
        db.read(readMessages, { conversationId: row.id, offset, limit }),
        db.read(feedbackBetween, { conversationId: row.id, from: offset + 1, to: offset + limit }),
      ]);
      const feedbackAt = new Map(rated.map((one) => [one.seq, toFeedback(one)]));
      return {
        session: {
          ...toSummary(row),
          inputTokens: row.inputTokens,
          outputTokens: row.outputTokens,
          toolCalls: row.toolCallCount,
          compactions: row.compactionCount,
          resetCount: row.resetCount,
          resetSeq: row.modelSeqFloor,
        },
        // Every stored message is committed.
        messages: messages.map((message) => {
          const feedback = feedbackAt.get(message.seq);
          const { reasoning, ...stored } = toStoredMessage(message);
          return {
            ...stored,
            // It is for people: an agent would take it for what was said.
            ...(reasoning !== undefined && call.agentCaller === undefined && { reasoning }),
            deliveryStatus: 'confirmed' as const,
            ...(feedback !== undefined && { feedback }),
          };
        }),
        total: row.messageCount,
        offset,
        limit,
        hasMore: offset + messages.length < row.messageCount,
      };
    },

    'session.export': async (address, call) => {
      const row = await addressing.existing(address, call);
      const messages = await allMessages(row);
      return {
        ...identityOf(row),
        metadata: {
          kind: row.kind,
          tenantId,
          tokensUsed: { input: row.inputTokens, output: row.outputTokens, total: row.inputTokens + row.outputTokens },
          totalCost: dollars(row.costNano),
          turns: row.turnCount,
        },
        messages,
        messageCount: messages.length,
        createdAt: row.createdAtMs,
        updatedAt: row.updatedAtMs,
      };
    },
  };

  return { methods, said };
}
