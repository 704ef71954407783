import * as z from 'zod';
import { MediaId } from '../http/media.ts';
import { method } from '../method.ts';
import { once } from '../once.ts';
import { pageParams, pageResult } from '../shared/paging.ts';
import {
  AgentId,
  ChannelEndpoint,
  conversationAddress,
  conversationIdentity,
  ConversationRef,
  ConversationScope,
  SessionKey,
} from '../shared/session.ts';
import { AnswerEffort, EpochMs, TokensUsed } from '../shared/turn.ts';

const identityExample = { conversationRef: 'cv_0000000000000000000000000000000000000000000', sessionKey: 'ada:desk', agentId: 'default' };

export const SessionKind = once(() => z.enum(['dm', 'group', 'sub-agent', 'v1']).meta({ id: 'SessionKind' }));

/** A stored media file that belongs to a message, as it was when the message was accepted. */
export const MessageAttachment = once(() =>
  z
    .strictObject({ mediaId: MediaId, contentType: z.string(), size: z.int().min(0).describe('Bytes.'), fileName: z.string().optional() })
    .meta({ id: 'MessageAttachment' }),
);
export type MessageAttachment = z.output<ReturnType<typeof MessageAttachment>>;

/** What a person thinks of an answer. */
export const MessageFeedback = once(() =>
  z
    .strictObject({
      rating: z.enum(['good', 'bad']),
      note: z.string().optional(),
      by: z.string().describe('The principal, such as `token:ada`.'),
      at: EpochMs,
    })
    .meta({ id: 'MessageFeedback' }),
);
export type MessageFeedback = z.output<ReturnType<typeof MessageFeedback>>;

/** One stored message; `toolCalls` on assistant rows, `toolCallId` and `toolName` on tool rows. */
export const StoredMessage = once(() =>
  z
    .strictObject({
      seq: z.int().min(1).describe('Position in the conversation, from 1, without gaps.'),
      turnId: z.string(),
      role: z.enum(['user', 'assistant', 'tool']),
      content: z.string(),
      toolCalls: z.array(z.strictObject({ id: z.string(), name: z.string(), arguments: z.string() })).optional(),
      toolCallId: z.string().optional(),
      toolName: z.string().optional(),
      attachments: z.array(MessageAttachment()).optional(),
      reasoning: z
        .strictObject({
          text: z.string(),
          durationMs: z.int().min(0),
          cut: z.literal(true).optional().describe('Only the first 32,000 characters are kept.'),
        })
        .optional()
        .describe(
          'What the model thought before this answer, where its provider returned it to a reader of the stream and the agent keeps it (`session.keepReasoning`). Models never get it back.',
        ),
      deliveryStatus: z
        .enum(['confirmed', 'pending'])
        .optional()
        .describe('In a history: `confirmed` once the turn of the message is stored and delivered.'),
      feedback: MessageFeedback().optional().describe('In a history, on the answer of a turn.'),
      timestamp: EpochMs,
    })
    .meta({ id: 'StoredMessage' }),
);

/** A label of a conversation, on one line. */
const ConversationTag = once(() =>
  z
    .string()
    .trim()
    .min(1)
    .max(40)
    .regex(/^[^\p{C}\p{Zl}\p{Zp}]+$/u, 'expected visible characters on one line')
    .meta({ id: 'ConversationTag' }),
);

/** A place in the lists of conversations; a new one is in `list`. */
const ConversationShelf = once(() => z.enum(['list', 'pinned', 'archived']).meta({ id: 'ConversationShelf' }));

const ConversationSource = once(() =>
  z
    .enum(['chat', 'job', 'sub-agent', 'webhook', 'heartbeat', 'evaluation'])
    .describe('What started the conversation: a message to the agent (`chat`), or work of the daemon.')
    .meta({ id: 'ConversationSource' }),
);

const summaryFields = once(() => ({
  ...conversationIdentity,
  conversationScope: ConversationScope.describe('The scope that `conversationRef` is a digest of; a delivery of a job contains both.'),
  kind: SessionKind(),
  title: z.string().optional().describe('The title that it was given, or the beginning of the first user message, at most 80 characters.'),
  named: z.literal(true).optional().describe('A person or a model gave it its title.'),
  shelf: ConversationShelf().optional().describe('Absent when it is neither pinned nor archived.'),
  tags: z.array(ConversationTag()).optional().describe('In the order of the alphabet; absent when there are none.'),
  source: ConversationSource(),
  forkedFrom: ConversationRef.optional().describe('The conversation that this one was forked from.'),
  synthetic: z.literal(true).optional().describe('A replay created it.'),
  endpoint: ChannelEndpoint.optional(),
  messageCount: z.int().min(0),
  totalTokens: z.int().min(0),
  createdAt: EpochMs,
  updatedAt: EpochMs,
}));
const summaryExample = {
  ...identityExample,
  conversationScope: {
    tenantId: 'default',
    agentId: 'default',
    partition: { kind: 'principal-key' as const, principalId: 'token:ada', sessionKey: identityExample.sessionKey },
  },
  kind: 'dm' as const,
  title: 'What is a gateway?',
  source: 'chat' as const,
  messageCount: 2,
  totalTokens: 129,
  createdAt: 1790000000000,
  updatedAt: 1790000000500,
};
const messagesExample = [
  { seq: 1, turnId: 'tn_1', role: 'user' as const, content: 'What is a gateway?', timestamp: 1790000000000 },
  { seq: 2, turnId: 'tn_1', role: 'assistant' as const, content: 'A gateway relays calls between clients and services.', timestamp: 1790000000500 },
];

/** A found message. */
const SearchHit = once(() =>
  z
    .strictObject({
      ...conversationIdentity,
      title: z.string().optional(),
      seq: z.int().min(1),
      turnId: z.string(),
      role: z.enum(['user', 'assistant', 'tool']),
      snippet: z.string().describe('An excerpt of the message on one line, at most 200 characters.'),
      marks: z
        .array(z.strictObject({ start: z.int().min(0), end: z.int().min(1) }))
        .describe('Positions of the query terms in `snippet`: offsets in UTF-16 code units, like JavaScript string indexes.'),
      score: z.number().min(0).max(1),
      timestamp: EpochMs,
    })
    .meta({ id: 'SessionSearchHit' }),
);

export const session = {
  'session.status': method({
    scope: 'rpc',
    risk: 'read',
    summary: "Returns the calling session's model, token usage, executed steps and step limit.",
    description:
      "Without an address it is the conversation of the caller's own token; before its first turn the counts are zero. Costs are in US dollars.",
    params: () => z.strictObject({ ...conversationAddress }),
    result: () =>
      z.strictObject({
        ...conversationIdentity,
        model: z.string(),
        efforts: z.array(AnswerEffort).describe('Values of `effort` in `POST /api/chat` for this model; empty when it has no choice.'),
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
          efforts: [],
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
    summary: 'Lists the conversations that the caller may see, of one agent or of all, newest first.',
    description:
      'A plain `rpc` token sees its own conversations, `admin` and `*` see all, an agent those of its principal with itself. Everything about a conversation is in the database: there are no transcript or workspace files to merge with it. Completions of `/v1` (kind `v1`) are listed only when requested by kind: their usage is kept, not their messages.',
    params: () =>
      z.strictObject({
        agentId: AgentId.optional().describe('The default agent when absent.'),
        allAgents: z.boolean().default(false).describe('Conversations of all agents that the caller may reach; wins over `agentId`.'),
        kind: z.enum(['all', 'dm', 'group', 'sub-agent', 'v1']).default('all').describe('`group`: the session key names a peer or a thread.'),
        source: ConversationSource().optional().describe('Only conversations that this started; all when absent.'),
        shelf: ConversationShelf().optional().describe('Only conversations that are kept there; all when absent.'),
        tag: ConversationTag().optional().describe('Only conversations with this tag, as it is written.'),
        sinceMinutes: z.int().min(1).max(525600).optional().describe('Only conversations with activity in the last minutes.'),
        ...pageParams({ defaultLimit: 50, maxLimit: 200 }),
      }),
    result: () => z.strictObject({ sessions: z.array(z.strictObject(summaryFields())), ...pageResult }),
    examples: [{ params: { kind: 'dm' }, result: { sessions: [summaryExample], total: 1, offset: 0, limit: 50, hasMore: false } }],
    since: '0.1.0',
  }),
  'session.history': method({
    scope: 'rpc',
    risk: 'read',
    summary: 'Returns the stored messages of a conversation, oldest first.',
    description: 'Negative offsets are not supported: to read the newest messages, use `offset` = `total` − `limit`.',
    params: () => z.strictObject({ ...conversationAddress, ...pageParams({ defaultLimit: 20, maxLimit: 200 }) }),
    result: () =>
      z.strictObject({
        session: z.strictObject({
          ...summaryFields(),
          inputTokens: z.int().min(0),
          outputTokens: z.int().min(0),
          toolCalls: z.int().min(0),
          compactions: z.int().min(0),
          resetCount: z.int().min(0),
          resetSeq: z
            .int()
            .min(0)
            .describe('Messages up to this position precede the last reset, so the model does not see them any more. 0 without a reset.'),
        }),
        messages: z.array(StoredMessage()),
        ...pageResult,
      }),
    errors: ['not_found'],
    examples: [
      {
        params: { sessionKey: 'ada:desk' },
        result: {
          session: { ...summaryExample, inputTokens: 120, outputTokens: 9, toolCalls: 0, compactions: 0, resetCount: 0, resetSeq: 0 },
          messages: messagesExample.map((message) => ({ ...message, deliveryStatus: 'confirmed' as const })),
          total: 2,
          offset: 0,
          limit: 20,
          hasMore: false,
        },
      },
    ],
    since: '0.1.0',
  }),
  'session.update': method({
    scope: 'rpc',
    risk: 'mutate',
    summary: 'Names, tags, pins or archives a conversation.',
    description:
      'What is absent stays as it is. A title is kept on one line and cut after 80 characters; null returns to the beginning of the first message. `tags` replaces all tags. An archived conversation is left out of the list of chats; a message in it does not bring it back. A conversation whose first turn has not ended cannot be changed yet.',
    params: () =>
      z.strictObject({
        ...conversationAddress,
        title: z.string().min(1).max(400).nullable().optional(),
        shelf: ConversationShelf().optional(),
        tags: z.array(ConversationTag()).max(10).optional(),
      }),
    result: () => z.strictObject(summaryFields()),
    errors: ['not_found'],
    examples: [
      {
        params: { sessionKey: 'ada:desk', title: 'Gateways', shelf: 'pinned', tags: ['work'] },
        result: { ...summaryExample, title: 'Gateways', named: true, shelf: 'pinned', tags: ['work'] },
      },
    ],
    since: '0.1.0',
  }),
  'session.tags': method({
    scope: 'rpc',
    risk: 'read',
    summary: 'Lists the tags of the conversations that the caller may see, the most used first.',
    description: 'At most 200 tags, of the newest 10,000 conversations that have some.',
    params: () => z.strictObject({}),
    result: () => z.strictObject({ tags: z.array(z.strictObject({ tag: ConversationTag(), count: z.int().min(1) })) }),
    examples: [{ params: {}, result: { tags: [{ tag: 'work', count: 12 }] } }],
    since: '0.1.0',
  }),
  'session.suggest_title': method({
    scope: 'rpc',
    risk: 'mutate',
    summary: 'Lets a model give a conversation a title, unless it already has one.',
    description:
      'The model is that of the operation `condensation` of the agent (`operationModels`), and reads the first question and its answer. The call is booked and counts for the budgets of the agent. `stored` is false when the conversation already has a title, which is returned without a model call, or was given one or cleared meanwhile. With `models.titles: false` no model is called.',
    params: () => z.strictObject({ ...conversationAddress }),
    result: () => z.strictObject({ ...conversationIdentity, title: z.string(), stored: z.boolean() }),
    errors: ['not_found'],
    examples: [{ params: { sessionKey: 'ada:desk' }, result: { ...identityExample, title: 'What a gateway does', stored: true } }],
    since: '0.1.0',
  }),
  'session.delete': method({
    scope: 'admin',
    risk: 'destructive',
    summary: 'Archives a conversation and removes its partition; retrieval memories stay.',
    description:
      'The archive row keeps the whole transcript. A running turn of the conversation ends first. The idempotency keys of its turns stay used and return no answer any more.',
    params: () => z.strictObject({ ...conversationAddress }),
    result: () =>
      z.strictObject({
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
    summary: 'Returns a complete conversation with its metadata as one JSON object.',
    params: () => z.strictObject({ ...conversationAddress }),
    result: () =>
      z.strictObject({
        ...conversationIdentity,
        metadata: z.strictObject({
          kind: SessionKind(),
          tenantId: z.string(),
          endpoint: ChannelEndpoint.optional(),
          tokensUsed: TokensUsed,
          totalCost: z.number().min(0),
          turns: z.int().min(0),
        }),
        messages: z.array(StoredMessage()),
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
  'session.search': method({
    scope: 'rpc',
    risk: 'read',
    summary: 'Searches messages in all conversations that the caller may see; without a query it lists the newest conversations.',
    description:
      'A message must contain all query terms, in any form (`deploy` finds `deployed`), case or accent; terms in quotes must follow each other. A message is found as soon as it is stored. The newest 1000 matches are counted and the newest 200 of them compared: `truncated` means that there are more, or that many messages are not indexed yet. Without `agentId` all agents that the caller may reach are searched.',
    params: () =>
      z.strictObject({
        agentId: AgentId.optional(),
        query: z.string().max(1000).optional(),
        scope: z.enum(['all', 'user', 'assistant', 'tool']).default('all').describe('Role of the message; `tool` means tool results.'),
        kind: z.enum(['all', 'dm', 'group', 'sub-agent']).default('all'),
        limit: z.int().min(1).max(50).default(10),
      }),
    result: () =>
      z.discriminatedUnion('mode', [
        z.strictObject({ mode: z.literal('recent'), sessions: z.array(z.strictObject(summaryFields())), total: z.int().min(0) }),
        z.strictObject({ mode: z.literal('search'), results: z.array(SearchHit()), total: z.int().min(0), truncated: z.boolean() }),
      ]),
    examples: [
      {
        params: { query: 'gateway relays' },
        result: {
          mode: 'search',
          results: [
            {
              ...identityExample,
              title: 'What is a gateway?',
              seq: 2,
              turnId: 'tn_1',
              role: 'assistant',
              snippet: 'A gateway relays calls between clients and services.',
              marks: [
                { start: 2, end: 9 },
                { start: 10, end: 16 },
              ],
              score: 0.45,
              timestamp: 1790000000500,
            },
          ],
          total: 1,
          truncated: false,
        },
      },
    ],
    since: '0.1.0',
  }),
  'session.compact': method({
    scope: 'rpc',
    risk: 'mutate',
    summary: 'Summarises a conversation so that less of it is sent to the model; every message stays stored.',
    description:
      'Waits for a running turn of the conversation and returns when the summaries are stored. `method` is `truncated` when no model returned a summary, and `none` when there was nothing to compact.',
    params: () =>
      z.strictObject({
        ...conversationAddress,
        instructions: z.string().min(1).max(4000).optional().describe('What the summary should focus on.'),
      }),
    result: () =>
      z.strictObject({
        ...conversationIdentity,
        compacted: z.boolean(),
        messageCount: z.int().min(0),
        tokensBefore: z.int().min(0).describe('Tokens of the conversation that were sent to the model before.'),
        tokensAfter: z.int().min(0),
        summaries: z.int().min(0).describe('Number of summaries written.'),
        method: z.enum(['summary', 'truncated', 'none']),
      }),
    errors: ['not_found', 'precondition_failed'],
    examples: [
      {
        params: { sessionKey: 'ada:desk', instructions: 'Keep the names of the services.' },
        result: { ...identityExample, compacted: true, messageCount: 240, tokensBefore: 61000, tokensAfter: 9000, summaries: 3, method: 'summary' },
      },
    ],
    since: '0.1.0',
  }),
  'session.reset': method({
    scope: 'rpc',
    risk: 'mutate',
    summary: 'Resets a conversation: later turns no longer see its earlier messages, and its summaries are dropped.',
    description:
      'The conversation keeps its identity, and its messages stay readable and searchable. A running turn ends first. `previousMessageCount` counts the messages since the last reset; when it is 0 the call changes nothing.',
    params: () => z.strictObject({ ...conversationAddress }),
    result: () => z.strictObject({ ...conversationIdentity, reset: z.literal(true), previousMessageCount: z.int().min(0) }),
    errors: ['not_found', 'precondition_failed'],
    examples: [{ params: { sessionKey: 'ada:desk' }, result: { ...identityExample, reset: true, previousMessageCount: 2 } }],
    since: '0.1.0',
  }),
  'session.stop': method({
    scope: 'rpc',
    risk: 'mutate',
    summary: 'Stops what runs in a conversation: its turns with everything that they started, and the messages queued behind them.',
    description: 'What the answer has so far is kept. Nothing to stop is not an error. For people, not for agents.',
    params: () => z.strictObject({ ...conversationAddress }),
    result: () =>
      z.strictObject({
        ...conversationIdentity,
        turns: z.int().min(0).describe('Stopped turns.'),
        messages: z.int().min(0).describe('Messages that get no turn.'),
      }),
    errors: ['not_found', 'denied'],
    examples: [{ params: { sessionKey: 'ada:desk' }, result: { ...identityExample, turns: 1, messages: 0 } }],
    since: '0.1.0',
  }),
  'session.steer': method({
    scope: 'rpc',
    risk: 'mutate',
    summary: 'Passes a message to the turn that runs in a conversation, without stopping it.',
    description:
      "Returns once the turn has taken the message: after its current model call or tool calls, as the newest message of its author. It is stored before the answer and becomes part of the turn; when the daemon is killed during the turn, it is a message of the conversation, which the next turn reads. `precondition_failed` when no turn takes messages or the turn ended before, and then the message may be sent as the next one. Turns of channels, jobs and other work that outlives a request take none. The caller's token must cover that of the turn (`denied`). At most 10 messages wait. For people, not for agents.",
    params: () => z.strictObject({ ...conversationAddress, message: z.string().min(1).max(20_000) }),
    result: () => z.strictObject({ ...conversationIdentity, taken: z.literal(true) }),
    errors: ['not_found', 'precondition_failed', 'denied', 'rate_limited'],
    examples: [{ params: { sessionKey: 'ada:desk', message: 'Only the last quarter, please.' }, result: { ...identityExample, taken: true } }],
    since: '0.1.0',
  }),
  'session.reset_conversation': method({
    scope: 'admin',
    risk: 'destructive',
    summary:
      'Erases the content of a conversation for good: messages, summaries and the answers of idempotency keys; with `memory` also its memories.',
    description:
      'Usage stays booked, and the conversation keeps its identity. It waits for a running turn of the conversation, and new turns wait for it: each message is either erased or kept whole. Missing layers count as 0, so a repeated call succeeds and erases nothing, and memories of a deleted conversation can still be removed. `purgeDerived` (or `purge_derived`) also removes everything derived from its memories, even if other conversations contributed; otherwise derived memories only lose this source.',
    params: () =>
      z
        .strictObject({
          ...conversationAddress,
          memory: z.boolean().default(false).describe('Also removes the memories that come from the conversation.'),
          purgeDerived: z.boolean().optional().describe('Also removes memories derived from them; requires `memory`.'),
          purge_derived: z.boolean().optional().describe('The same as `purgeDerived`.'),
        })
        .refine((params) => params.memory || !(params.purgeDerived ?? params.purge_derived ?? false), {
          path: ['memory'],
          message: 'expected true, because purgeDerived is',
        }),
    result: () =>
      z.strictObject({
        conversationRef: ConversationRef,
        messagesDeleted: z.int().min(0),
        summariesDeleted: z.int().min(0),
        memoriesDeleted: z.int().min(0).optional().describe('Only with `memory`, like the next two.'),
        derivedDeleted: z.int().min(0).optional(),
        derivedUnlinked: z.int().min(0).optional().describe('Derived memories that were kept and lost a source.'),
        runtimeSessionDestroyed: z.boolean().describe('Whether the model could see any of the conversation.'),
      }),
    errors: ['precondition_failed', 'denied'],
    examples: [
      {
        params: { conversationRef: identityExample.conversationRef, memory: true },
        result: {
          conversationRef: identityExample.conversationRef,
          messagesDeleted: 2,
          summariesDeleted: 0,
          memoriesDeleted: 1,
          derivedDeleted: 0,
          derivedUnlinked: 0,
          runtimeSessionDestroyed: true,
        },
      },
    ],
    since: '0.1.0',
  }),
  'session.fork': method({
    scope: 'rpc',
    risk: 'mutate',
    summary: 'Creates a new conversation from the messages of another one, up to any of them; the original is unchanged.',
    description:
      'The new conversation belongs to the caller and has the same agent; its usage starts at zero. Tool results after the last message are copied with the call that they answer. At most 50,000 messages are copied.',
    params: () =>
      z.strictObject({
        ...conversationAddress,
        seq: z.int().min(0).optional().describe('Position of the last message that is copied, 0 for none; all when absent.'),
        forkKey: SessionKey.optional().describe('Session key of the new conversation; derived from that of the original when absent.'),
      }),
    result: () => z.strictObject({ ...conversationIdentity, forkedFrom: ConversationRef, messageCount: z.int().min(0) }),
    errors: ['not_found', 'conflict', 'precondition_failed'],
    examples: [
      {
        params: { conversationRef: identityExample.conversationRef, seq: 2 },
        result: {
          conversationRef: 'cv_1111111111111111111111111111111111111111111',
          sessionKey: 'ada:desk~4f2a9c',
          agentId: 'default',
          forkedFrom: identityExample.conversationRef,
          messageCount: 2,
        },
      },
    ],
    since: '0.1.0',
  }),
  'session.feedback': method({
    scope: 'rpc',
    risk: 'mutate',
    summary: 'Marks an answer as good or bad, with a note; `rating: null` removes the mark.',
    description:
      'Each answer has one mark, the last one. It survives a reset, is part of `session.history` and of the trace, and is deleted with the messages of the conversation. `eval.cases` makes test cases of marked answers.',
    params: () =>
      z.strictObject({
        ...conversationAddress,
        turnId: z.string().min(1).max(64).optional().describe('The turn that answered; the newest answer of the conversation otherwise.'),
        traceId: z.string().min(1).max(64).optional().describe('The trace of the turn, instead of `turnId`: results of turns name it.'),
        rating: z.enum(['good', 'bad']).nullable(),
        note: z.string().max(2048).optional().describe('At most 2,048 bytes.'),
      }),
    result: () =>
      z.strictObject({
        ...conversationIdentity,
        turnId: z.string(),
        seq: z.int().min(1).describe('Position of the answer.'),
        feedback: MessageFeedback().optional().describe('Absent once removed.'),
      }),
    errors: ['not_found', 'denied', 'invalid_params'],
    examples: [
      {
        params: { sessionKey: 'ada:desk', turnId: 'tn_1', rating: 'bad', note: 'The price is that of last year.' },
        result: {
          ...identityExample,
          turnId: 'tn_1',
          seq: 2,
          feedback: { rating: 'bad', note: 'The price is that of last year.', by: 'token:ada', at: 1790000001000 },
        },
      },
    ],
    since: '0.1.0',
  }),
};

export type StoredMessage = z.output<ReturnType<typeof StoredMessage>>;
export type SessionKind = z.output<ReturnType<typeof SessionKind>>;
