import * as z from 'zod';
import { once } from '../once.ts';
import { ModelName } from '../shared/agent-config.ts';
import { AgentId, ConversationRef, PrintedSessionKey, SessionKey } from '../shared/session.ts';
import { AnswerEffort, FinishReason, TokensUsed, TurnCostUsd } from '../shared/turn.ts';
import { MediaId } from './media.ts';

/** Body of `POST /api/chat` and `POST /api/chat/stream` (http-gateway.md §2.9, §4.6). */
export const ApiChatRequest = once(() =>
  z
    .strictObject({
      message: z.string().min(1),
      agentId: AgentId.optional().describe('The default agent otherwise.'),
      sessionKey: SessionKey.optional().describe('The conversation of the token otherwise.'),
      conversationRef: ConversationRef.optional().describe('An existing conversation; instead of sessionKey.'),
      model: ModelName.optional().describe('Model of this turn, as `provider/model`; that of the agent otherwise. Later turns may use another one.'),
      effort: AnswerEffort.optional().describe(
        'How long the model reasons before this answer, of the `efforts` that it has; refused where it has none. That of the model otherwise.',
      ),
      locale: z.string().max(255).optional().describe('Canonical BCP-47 tag, such as `de-CH`; shown to the agent.'),
      attachments: z
        .array(z.strictObject({ mediaId: MediaId }))
        .max(5)
        .optional()
        .describe('Media stored before by `POST /media`.'),
    })
    .refine(({ sessionKey, conversationRef }) => sessionKey === undefined || conversationRef === undefined, {
      path: ['conversationRef'],
      message: 'expected without sessionKey',
    })
    .meta({ id: 'ApiChatRequest' }),
);
export type ApiChatRequest = z.output<ReturnType<typeof ApiChatRequest>>;

/** Answer of `POST /api/chat`, and data of the `done` event of `POST /api/chat/stream`. */
export const ApiChatResult = once(() =>
  z
    .strictObject({
      response: z.string(),
      tokensUsed: TokensUsed,
      costUsd: TurnCostUsd,
      finishReason: FinishReason,
      sessionKey: PrintedSessionKey,
      conversationRef: ConversationRef,
      traceId: z.string(),
      failure: z.strictObject({ message: z.string(), kind: z.string(), retryAfterMs: z.number().optional() }).optional(),
    })
    .meta({ id: 'ApiChatResult' }),
);
export type ApiChatResult = z.output<ReturnType<typeof ApiChatResult>>;

/** Data of a `token` event of `POST /api/chat/stream`: the new text only. */
export const ApiChatToken = once(() => z.strictObject({ delta: z.string() }).meta({ id: 'ApiChatToken' }));

/**
 * Data of a `gap` event of a stream that is continued: what was read before does not join up with what follows, the
 * whole answer is in `done`. `resumesAt` is the id of the next `token` event, null when none follows.
 */
export const ApiChatGap = once(() => z.strictObject({ resumesAt: z.int().min(1).nullable() }).meta({ id: 'ApiChatGap' }));
export type ApiChatGap = z.output<ReturnType<typeof ApiChatGap>>;
