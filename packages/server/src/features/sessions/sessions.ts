import type { ApiChatHistory, ResultInput, StoredMessage } from '@gatehouse/contract';
import { AppError } from '../../kernel/app-error.ts';
import { announceAudit, auditRow } from '../../kernel/audit.ts';
import type { CallContext } from '../../kernel/call-context.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Db } from '../../kernel/db/db.ts';
import type { Operation } from '../../kernel/db/operation.ts';
import type { EventBus } from '../../kernel/event-bus.ts';
import type { HandlersOf } from '../../kernel/handlers.ts';
import { newId } from '../../kernel/ids.ts';
import { decodeAttachments, decodeToolColumn, toModelMessage } from '../../runtime/stored-message.ts';
import type { AgentsApi } from '../agents/api.ts';
import type { ConversationAddress } from '../turns/api.ts';
import type { MessageRow, PastAttachments, SessionsApi } from './api.ts';
import { conversationRef, parseSessionKey, printSessionKey, tenantId } from './conversation.ts';
import {
  type Archival,
  type ConversationRow,
  findConversation,
  findConversationsByKey,
  listConversations,
  readMessages,
  readSaid,
  readTail,
} from './store.ts';

type SessionMethods = HandlersOf<`session.${'status' | 'list' | 'history' | 'delete' | 'export'}`>;

/** Rows of a conversation that are read for one turn; older ones stay stored and are out of any model's window. */
const tailLimit = 2000;
/** Page size with which an export walks a conversation. */
const exportPage = 500;

export interface SessionsDeps {
  readonly db: Db;
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly agents: AgentsApi;
  /** The model that an agent's turns use first, as `provider/modelId`. */
  readonly modelOf: (agentId: string) => string;
  readonly deleteConversation: Operation<Archival, ConversationRow>;
  /** Runs alone in the lane of a conversation: no turn runs in it meanwhile. */
  readonly alone: <T>(ref: string, call: CallContext, run: () => Promise<T>) => Promise<T>;
  readonly laneOf: (ref: string) => { readonly running: boolean; readonly queued: number };
}

const isAdmin = (call: CallContext) => call.identity.scopes.some((scope) => scope === 'admin' || scope === '*');
/** One text for unknown and foreign alike: the answer must not tell them apart. */
const notFound = () => new AppError('not_found', 'Conversation not found');

export function createSessions(deps: SessionsDeps): { readonly api: SessionsApi; readonly methods: SessionMethods } {
  function mayReach(row: { agentId: string; principalId: string }, call: CallContext): boolean {
    return (call.identity.agents?.includes(row.agentId) ?? true) && (row.principalId === call.identity.principalId || isAdmin(call));
  }

  /** The key and agent that an address without reference means; by default the conversation of the caller's own token. */
  function keyOf(address: ConversationAddress, call: CallContext) {
    const agentId = address.agentId ?? deps.agents.defaultId;
    const key = address.sessionKey === undefined ? { userId: call.identity.tokenId, channelId: 'gateway' } : parseSessionKey(address.sessionKey);
    return { agentId, sessionKey: printSessionKey(key), ref: conversationRef(agentId, call.identity.principalId, key) };
  }

  async function byReference(ref: string, address: ConversationAddress, call: CallContext): Promise<ConversationRow> {
    const row = await deps.db.read(findConversation, { ref });
    if (row === undefined || !mayReach(row, call) || (address.agentId !== undefined && address.agentId !== row.agentId)) throw notFound();
    if (address.sessionKey !== undefined && printSessionKey(parseSessionKey(address.sessionKey)) !== row.sessionKey) throw notFound();
    return row;
  }

  /** The stored conversation that an address names; an admin also reaches a key that exactly one other principal uses. */
  async function existing(address: ConversationAddress, call: CallContext): Promise<ConversationRow> {
    if (address.conversationRef !== undefined) return byReference(address.conversationRef, address, call);
    const own = keyOf(address, call);
    const row = await deps.db.read(findConversation, { ref: own.ref });
    if (row !== undefined && mayReach(row, call)) return row;
    if (!isAdmin(call) || address.sessionKey === undefined) throw notFound();
    const others = (await deps.db.read(findConversationsByKey, { agentId: own.agentId, sessionKey: own.sessionKey })).filter((other) =>
      mayReach(other, call),
    );
    if (others.length > 1)
      throw new AppError('precondition_failed', `Several conversations have the key ${own.sessionKey}; name one by conversationRef`, {
        param: 'sessionKey',
      });
    if (others[0] === undefined) throw notFound();
    return others[0];
  }

  const api: SessionsApi = {
    async target(address, call) {
      if (address.conversationRef === undefined) return { ...keyOf(address, call), principalId: call.identity.principalId };
      const row = await byReference(address.conversationRef, address, call);
      return { ref: row.ref, sessionKey: row.sessionKey, agentId: row.agentId, principalId: row.principalId };
    },
    async history(ref) {
      const rows = await deps.db.read(readTail, { ref, limit: tailLimit });
      const attached: PastAttachments[] = [];
      for (const [index, { attachmentsJson }] of rows.entries())
        if (attachmentsJson !== null) attached.push({ index, attachments: decodeAttachments(attachmentsJson) });
      return { messages: rows.map(toModelMessage), attached };
    },
    said,
  };

  async function said({ offset, limit, ...address }: Parameters<SessionsApi['said']>[0], call: CallContext): Promise<ApiChatHistory> {
    const named = address.conversationRef !== undefined || address.sessionKey !== undefined;
    const own = keyOf(address, call);
    const row = named ? await existing(address, call) : await deps.db.read(findConversation, { ref: own.ref });
    const { conversationRef: ref, sessionKey, agentId } = row === undefined ? { ...own, conversationRef: own.ref } : identityOf(row);
    if ((row === undefined && deps.agents.find(agentId) === undefined) || call.identity.agents?.includes(agentId) === false)
      throw new AppError('not_found', `Agent not found: ${agentId}`, { param: 'agentId' });
    const { rows, total } = row === undefined ? { rows: [], total: 0 } : await deps.db.read(readSaid, { conversationId: row.id, offset, limit });
    const messages = rows.map(({ role, content, createdAtMs }) => ({ role, content, timestamp: createdAtMs }));
    return { conversationRef: ref, sessionKey, agentId, messages, total, offset, limit, hasMore: offset + rows.length < total };
  }

  async function allMessages(row: ConversationRow): Promise<StoredMessage[]> {
    const messages: StoredMessage[] = [];
    for (let offset = 0; offset < row.messageCount; offset += exportPage) {
      messages.push(
        ...(await deps.db.read(readMessages, { conversationId: row.id, offset, limit: Math.min(exportPage, row.messageCount - offset) })).map(
          toStoredMessage,
        ),
      );
    }
    return messages;
  }

  const methods: SessionMethods = {
    'session.status': async (address, call) => {
      const named = address.conversationRef !== undefined || address.sessionKey !== undefined;
      const own = keyOf(address, call);
      const row = named ? await existing(address, call) : await deps.db.read(findConversation, { ref: own.ref });
      const agent = deps.agents.find(row?.agentId ?? own.agentId);
      if (agent === undefined || (call.identity.agents !== undefined && !call.identity.agents.includes(agent.id)))
        throw new AppError('not_found', `Agent not found: ${row?.agentId ?? own.agentId}`, { param: 'agentId' });
      const ref = row?.ref ?? own.ref;
      return {
        conversationRef: ref,
        sessionKey: row?.sessionKey ?? own.sessionKey,
        agentId: agent.id,
        model: deps.modelOf(agent.id),
        agentName: agent.config.name,
        tokensUsed: { totalTokens: row === undefined ? 0 : row.inputTokens + row.outputTokens, totalCost: dollars(row?.costNano ?? 0) },
        stepsExecuted: row?.stepCount ?? 0,
        maxSteps: agent.config.maxSteps,
        ...deps.laneOf(ref),
      };
    },

    'session.list': async ({ agentId = deps.agents.defaultId, kind, sinceMinutes, offset, limit }, call) => {
      const reachable = call.identity.agents?.includes(agentId) ?? true;
      const { rows, total } = reachable
        ? await deps.db.read(listConversations, {
            agentId,
            principalId: isAdmin(call) ? null : call.identity.principalId,
            kind,
            sinceMs: sinceMinutes === undefined ? null : deps.clock.now() - sinceMinutes * 60_000,
            offset,
            limit,
          })
        : { rows: [], total: 0 };
      return { sessions: rows.map(toSummary), total, offset, limit, hasMore: offset + rows.length < total };
    },

    'session.history': async ({ offset, limit, ...address }, call) => {
      const row = await existing(address, call);
      const messages = await deps.db.read(readMessages, { conversationId: row.id, offset, limit });
      return {
        session: { ...toSummary(row), inputTokens: row.inputTokens, outputTokens: row.outputTokens, toolCalls: row.toolCallCount },
        messages: messages.map(toStoredMessage),
        total: row.messageCount,
        offset,
        limit,
        hasMore: offset + messages.length < row.messageCount,
      };
    },

    'session.export': async (address, call) => {
      const row = await existing(address, call);
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

    'session.delete': async (address, call) => {
      const found = await existing(address, call);
      return deps.alone(found.ref, call, async () => {
        const atMs = deps.clock.now();
        const archiveId = newId('ar');
        const audit = auditRow(call, atMs, {
          actionType: 'session.delete',
          classification: 'destructive',
          target: found.ref,
          metadata: { archiveId },
        });
        const row = await deps.db.write(deps.deleteConversation, { ref: found.ref, archiveId, atMs, audit });
        announceAudit(deps.bus, audit);
        return {
          ...identityOf(row),
          deleted: true as const,
          archiveId,
          transcript: { messageCount: row.messageCount, createdAt: row.createdAtMs, updatedAt: row.updatedAtMs },
        };
      });
    },
  };

  return { api, methods };
}

/** Stored money is in 1e-9 dollar; the wire has dollars. */
const dollars = (nano: number) => nano / 1e9;

const identityOf = (row: ConversationRow) => ({ conversationRef: row.ref, sessionKey: row.sessionKey, agentId: row.agentId });

function toSummary(row: ConversationRow): ResultInput<'session.list'>['sessions'][number] {
  return {
    ...identityOf(row),
    kind: row.kind,
    messageCount: row.messageCount,
    totalTokens: row.inputTokens + row.outputTokens,
    createdAt: row.createdAtMs,
    updatedAt: row.updatedAtMs,
  };
}

function toStoredMessage(row: MessageRow): StoredMessage {
  const { toolCalls, toolCallId, toolName } = decodeToolColumn(row.toolJson);
  return {
    seq: row.seq,
    turnId: row.turnId,
    role: row.role,
    content: row.content,
    ...(toolCalls !== undefined && { toolCalls: [...toolCalls] }),
    ...(toolCallId !== undefined && { toolCallId }),
    ...(toolName !== undefined && { toolName }),
    ...(row.attachmentsJson !== null && { attachments: [...decodeAttachments(row.attachmentsJson)] }),
    timestamp: row.createdAtMs,
  };
}
