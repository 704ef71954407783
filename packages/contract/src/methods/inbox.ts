import * as z from 'zod';
import { method } from '../method.ts';
import { once } from '../once.ts';
import { GraphId, NodeId } from '../shared/graph.ts';
import { AgentId, ConversationRef } from '../shared/session.ts';
import { EpochMs } from '../shared/turn.ts';

const InboxMessageId = once(() => z.string().regex(/^in_[0-9a-f-]{36}$/, 'expected the id of an inbox message, in_ followed by a UUID'));

/** One message of the built-in channel `gateway`. */
export const InboxMessage = once(() =>
  z
    .strictObject({
      id: InboxMessageId(),
      source: z.enum(['cron', 'heartbeat', 'webhook', 'turn', 'subagent', 'graph', 'autonomy', 'mcp', 'channel']),
      level: z.enum(['info', 'alert']),
      agentId: AgentId,
      conversationRef: ConversationRef.nullable().describe('The conversation of the message; null when it has none.'),
      text: z.string(),
      asks: z
        .strictObject({ graphId: GraphId(), nodeId: NodeId() })
        .optional()
        .describe('The approval gate that asks the question: `graph.answer` answers it, `graph.status` shows whether it is still pending.'),
      createdAt: EpochMs,
      readAt: EpochMs.nullable(),
    })
    .meta({ id: 'InboxMessage' }),
);
export type InboxMessage = z.output<ReturnType<typeof InboxMessage>>;

const example = {
  id: 'in_0199e0a0-7c00-7000-8000-000000000001',
  source: 'cron',
  level: 'info',
  agentId: 'default',
  conversationRef: 'cv_47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU',
  text: 'Three mails need an answer today.',
  createdAt: 1_790_000_000_000,
  readAt: null,
} as const;

export const inbox = {
  'inbox.list': method({
    scope: 'rpc',
    risk: 'read',
    summary: 'Lists messages of schedules, heartbeats, webhooks, sub-agents and graphs, newest first.',
    description: 'Callers see their own messages, admins those of all. The newest 1,000 per owner are kept.',
    params: () =>
      z.strictObject({
        unreadOnly: z.boolean().default(false),
        limit: z.int().min(1).max(100).default(50),
        before: InboxMessageId().optional().describe('The last message of the previous page.'),
      }),
    result: () => z.strictObject({ messages: z.array(InboxMessage()), unread: z.int().min(0).describe('Unread messages visible to the caller.') }),
    examples: [{ params: { unreadOnly: true }, result: { messages: [example], unread: 1 } }],
    since: '0.1.0',
  }),
  'inbox.markRead': method({
    scope: 'rpc',
    risk: 'mutate',
    summary: 'Marks inbox messages as read; pass either `ids` or `all`.',
    description: 'Ignores ids that are unknown, of other owners or already read; `marked` counts the others.',
    params: () =>
      z
        .strictObject({ ids: z.array(InboxMessageId()).min(1).max(1000).optional(), all: z.literal(true).optional() })
        .refine(({ ids, all }) => (ids === undefined) !== (all === undefined), 'expected either ids or all'),
    result: () => z.strictObject({ marked: z.int().min(0) }),
    examples: [{ params: { ids: [example.id] }, result: { marked: 1 } }],
    since: '0.1.0',
  }),
};
