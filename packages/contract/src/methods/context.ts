import * as z from 'zod';
import { method } from '../method.ts';
import { once } from '../once.ts';
import { AgentId, ConversationRef, PrintedSessionKey } from '../shared/session.ts';
import { EpochMs } from '../shared/turn.ts';

const refExample = 'cv_0000000000000000000000000000000000000000000';
const SummaryId = z.string().regex(/^sum_[0-9a-f]{16}$/, 'expected sum_ followed by 16 hexadecimal digits');

/** One node in a conversation's tree of notes. */
export const ContextNode = once(() =>
  z
    .strictObject({
      summaryId: SummaryId,
      kind: z.enum(['leaf', 'condensed']).describe('`leaf`: notes on messages; `condensed`: notes on other notes.'),
      depth: z.int().min(0),
      tokenCount: z.int().min(0),
      contentPreview: z.string().max(200),
      fromSeq: z.int().min(1).describe('First covered message.'),
      toSeq: z.int().min(1),
      childIds: z.array(SummaryId),
      parentIds: z.array(SummaryId),
      taint: z.enum(['clean', 'wrapped']).describe('`wrapped`: covers untrusted text, such as tool results.'),
      model: z.string().describe('The model that wrote it; `truncation` for heads and tails of messages without a model.'),
      createdAt: EpochMs,
    })
    .meta({ id: 'ContextNode' }),
);

export const context = {
  'context.conversations': method({
    scope: 'rpc',
    risk: 'read',
    summary: 'Lists the conversations of the calling agent whose context can be inspected, newest first.',
    description:
      'Operators see the default agent; agent and tenant cannot be selected. A plain `rpc` token sees its own conversations, `admin` and `*` see all of the agent.',
    params: () => z.strictObject({ limit: z.int().min(1).max(500).default(100), offset: z.int().min(0).default(0) }),
    result: () =>
      z.strictObject({
        conversations: z.array(
          z.strictObject({
            conversationRef: ConversationRef,
            tenantId: z.string(),
            agentId: AgentId,
            sessionKey: PrintedSessionKey,
            title: z.string().nullable().describe('Start of the first message.'),
            createdAt: EpochMs,
            updatedAt: EpochMs,
            messageCount: z.int().min(0),
          }),
        ),
        total: z.int().min(0),
      }),
    examples: [
      {
        params: { limit: 10 },
        result: {
          conversations: [
            {
              conversationRef: refExample,
              tenantId: 'default',
              agentId: 'default',
              sessionKey: 'ada:desk',
              title: 'What is a gateway?',
              createdAt: 1790000000000,
              updatedAt: 1790000000500,
              messageCount: 2,
            },
          ],
          total: 1,
        },
      },
    ],
    since: '0.1.0',
  }),
  'context.tree': method({
    scope: 'rpc',
    risk: 'read',
    summary: 'Shows how the model sees the older part of a conversation: the tree of notes, and where verbatim messages start.',
    description:
      'The model receives messages up to `cutSeq` as notes and later ones verbatim; all of them remain stored. ' +
      'The tree is empty for unknown conversations and for those of other owners or agents.',
    params: () => z.strictObject({ conversationRef: ConversationRef }),
    result: () =>
      z.strictObject({
        conversationRef: ConversationRef,
        nodes: z.array(ContextNode()).describe('Ordered by message, parents before their children; at most the newest 2000.'),
        messageCount: z.int().min(0),
        cutSeq: z.int().min(0),
        notesTokens: z.int().min(0).describe('Tokens of the notes before the messages.'),
      }),
    examples: [
      {
        params: { conversationRef: refExample },
        result: {
          conversationRef: refExample,
          nodes: [
            {
              summaryId: 'sum_00000000000000aa',
              kind: 'leaf',
              depth: 0,
              tokenCount: 212,
              contentPreview: 'The user plans a move to Lisbon in May; budget 1,200 EUR a month.',
              fromSeq: 1,
              toSeq: 24,
              childIds: [],
              parentIds: [],
              taint: 'clean',
              model: 'local/test-model',
              createdAt: 1790000000500,
            },
          ],
          messageCount: 40,
          cutSeq: 24,
          notesTokens: 268,
        },
      },
    ],
    since: '0.1.0',
  }),
};
