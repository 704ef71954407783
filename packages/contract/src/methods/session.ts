import * as z from 'zod';
import { MediaId } from '../http/media.ts';
import { method } from '../method.ts';
import { pageParams, pageResult } from '../shared/paging.ts';
import { AgentId, ChannelEndpoint, conversationAddress, conversationIdentity } from '../shared/session.ts';
import { EpochMs, TokensUsed } from '../shared/turn.ts';

const identityExample = { conversationRef: 'cv_0000000000000000000000000000000000000000000', sessionKey: 'ada:desk', agentId: 'default' };

export const SessionKind = z.enum(['dm', 'group', 'sub-agent', 'v1']).meta({ id: 'SessionKind' });

/** A stored medium that belongs to a message, as it was when the message was taken. */
export const MessageAttachment = z
  .strictObject({ mediaId: MediaId, contentType: z.string(), size: z.int().min(0).describe('Bytes.'), fileName: z.string().optional() })
  .meta({ id: 'MessageAttachment' });
export type MessageAttachment = z.output<typeof MessageAttachment>;

/** One stored message; `toolCalls` on assistant rows, `toolCallId` and `toolName` on tool rows. */
export const StoredMessage = z
  .strictObject({
    seq: z.int().min(1).describe('Position in the conversation, from 1, without gaps.'),
    turnId: z.string(),
    role: z.enum(['user', 'assistant', 'tool']),
    content: z.string(),
    toolCalls: z.array(z.strictObject({ id: z.string(), name: z.string(), arguments: z.string() })).optional(),
    toolCallId: z.string().optional(),
    toolName: z.string().optional(),
    attachments: z.array(MessageAttachment).optional(),
    timestamp: EpochMs,
  })
  .meta({ id: 'StoredMessage' });

const summaryFields = {
  ...conversationIdentity,
  kind: SessionKind,
  endpoint: ChannelEndpoint.optional(),
  messageCount: z.int().min(0),
  totalTokens: z.int().min(0),
  createdAt: EpochMs,
  updatedAt: EpochMs,
};
const summaryExample = {
  ...identityExample,
  kind: 'dm' as const,
  messageCount: 2,
  totalTokens: 129,
  createdAt: 1790000000000,
  updatedAt: 1790000000500,
};
const messagesExample = [
  { seq: 1, turnId: 'tn_1', role: 'user' as const, content: 'What is a gateway?', timestamp: 1790000000000 },
  { seq: 2, turnId: 'tn_1', role: 'assistant' as const, content: 'A gateway stands between clients and services.', timestamp: 1790000000500 },
];

export const session = {
  'session.status': method({
    scope: 'rpc',
    risk: 'read',
    summary: "Tells the calling session's model, token use, steps executed and step limit.",
    description:
      "Without an address it is the conversation of the caller's own token; before its first turn the counts are zero. Costs are in US dollars.",
    params: z.strictObject({ ...conversationAddress }),
    result: z.strictObject({
      ...conversationIdentity,
      model: z.string(),
      agentName: z.string(),
      tokensUsed: z.strictObject({ totalTokens: z.int().min(0), totalCost: z.number().min(0) }),
      stepsExecuted: z.int().min(0),
      maxSteps: z.int().min(1),
      running: z.boolean(),
      queued: z.int().min(0),
    }),
    errors: ['not_found'],
    examples: [
      {
        params: {},
        result: {
          ...identityExample,
          model: 'local/test-model',
          agentName: 'Gate',
          tokensUsed: { totalTokens: 129, totalCost: 0.000138 },
          stepsExecuted: 1,
          maxSteps: 150,
          running: false,
          queued: 0,
        },
      },
    ],
    since: '0.1.0',
  }),
  'session.list': method({
    scope: 'rpc',
    risk: 'read',
    summary: 'Lists the conversations of one agent that the caller may see, newest first.',
    description:
      'A plain `rpc` token sees its own conversations, `admin` and `*` see all. Completions of `/v1` (kind `v1`) are listed only when asked for by kind: their usage is kept, not their messages.',
    params: z.strictObject({
      agentId: AgentId.optional(),
      kind: z.enum(['all', 'dm', 'group', 'sub-agent', 'v1']).default('all'),
      sinceMinutes: z.int().min(1).max(525600).optional().describe('Only conversations with activity in this many last minutes.'),
      ...pageParams({ defaultLimit: 50, maxLimit: 200 }),
    }),
    result: z.strictObject({ sessions: z.array(z.strictObject(summaryFields)), ...pageResult }),
    examples: [{ params: { kind: 'dm' }, result: { sessions: [summaryExample], total: 1, offset: 0, limit: 50, hasMore: false } }],
    since: '0.1.0',
  }),
  'session.history': method({
    scope: 'rpc',
    risk: 'read',
    summary: 'Returns the stored messages of a conversation, oldest first.',
    description: 'A negative page is not offered: to read the newest messages take `offset` = `total` − `limit`.',
    params: z.strictObject({ ...conversationAddress, ...pageParams({ defaultLimit: 20, maxLimit: 200 }) }),
    result: z.strictObject({
      session: z.strictObject({ ...summaryFields, inputTokens: z.int().min(0), outputTokens: z.int().min(0), toolCalls: z.int().min(0) }),
      messages: z.array(StoredMessage),
      ...pageResult,
    }),
    errors: ['not_found'],
    examples: [
      {
        params: { sessionKey: 'ada:desk' },
        result: {
          session: { ...summaryExample, inputTokens: 120, outputTokens: 9, toolCalls: 0 },
          messages: messagesExample,
          total: 2,
          offset: 0,
          limit: 20,
          hasMore: false,
        },
      },
    ],
    since: '0.1.0',
  }),
  'session.delete': method({
    scope: 'admin',
    risk: 'destructive',
    summary: 'Archives a conversation and removes its partition; retrieval memories stay.',
    description:
      'The archive row keeps the whole transcript. A turn that runs in the conversation ends first. The idempotency keys of its turns stay used and give no answer any more.',
    params: z.strictObject({ ...conversationAddress }),
    result: z.strictObject({
      ...conversationIdentity,
      deleted: z.literal(true),
      archiveId: z.string(),
      transcript: z.strictObject({ messageCount: z.int().min(0), createdAt: EpochMs, updatedAt: EpochMs }),
    }),
    errors: ['not_found'],
    examples: [
      {
        params: { sessionKey: 'ada:desk' },
        result: {
          ...identityExample,
          deleted: true,
          archiveId: 'ar_1',
          transcript: { messageCount: 2, createdAt: 1790000000000, updatedAt: 1790000000500 },
        },
      },
    ],
    since: '0.1.0',
  }),
  'session.export': method({
    scope: 'rpc',
    risk: 'read',
    summary: 'Returns a whole conversation with its metadata as one JSON object.',
    params: z.strictObject({ ...conversationAddress }),
    result: z.strictObject({
      ...conversationIdentity,
      metadata: z.strictObject({
        kind: SessionKind,
        tenantId: z.string(),
        endpoint: ChannelEndpoint.optional(),
        tokensUsed: TokensUsed,
        totalCost: z.number().min(0),
        turns: z.int().min(0),
      }),
      messages: z.array(StoredMessage),
      messageCount: z.int().min(0),
      createdAt: EpochMs,
      updatedAt: EpochMs,
    }),
    errors: ['not_found'],
    examples: [
      {
        params: { sessionKey: 'ada:desk' },
        result: {
          ...identityExample,
          metadata: { kind: 'dm', tenantId: 'default', tokensUsed: { input: 120, output: 9, total: 129 }, totalCost: 0.000138, turns: 1 },
          messages: messagesExample,
          messageCount: 2,
          createdAt: 1790000000000,
          updatedAt: 1790000000500,
        },
      },
    ],
    since: '0.1.0',
  }),
};

export type StoredMessage = z.output<typeof StoredMessage>;
export type SessionKind = z.output<typeof SessionKind>;
