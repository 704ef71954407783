import type { FinishReason, SessionKeyObject, TokensUsed } from '@gatehouse/contract';
import type * as z from 'zod';
import type { CallContext } from '../../kernel/call-context.ts';
import type { TurnSink } from '../../runtime/turn.ts';

/** How a caller names a conversation; without any field it is the one of its own token. */
export interface ConversationAddress {
  readonly conversationRef?: string | undefined;
  readonly sessionKey?: z.output<typeof SessionKeyObject> | string | undefined;
  readonly agentId?: string | undefined;
}

export interface CompletionRequest {
  /** `chatcmpl-<uuid>`; the peer of the ephemeral conversation (http-gateway.md §2.5). */
  readonly completionId: string;
  /** As sent: provider/model, bare model id, or agent id. */
  readonly model: string;
  readonly messages: readonly { readonly role: 'system' | 'user' | 'assistant'; readonly content: string }[];
  readonly temperature?: number | undefined;
  readonly maxTokens?: number | undefined;
}

export interface TurnOutcome {
  readonly finishReason: FinishReason;
  readonly text: string;
  readonly tokensUsed: z.output<typeof TokensUsed>;
  /** Present when the turn did not do its work; `kind` is a ModelErrorKind or a finish reason. */
  readonly failure?: { readonly message: string; readonly kind: string; readonly retryAfterMs?: number };
  readonly conversationRef: string;
  readonly sessionKey: string;
  readonly agentId: string;
  readonly turnId: string;
  readonly traceId: string;
}

export interface TurnsApi {
  /** One turn in the conversation of `address`. Resolves after the commit is synced. */
  execute(input: { readonly message: string; readonly address: ConversationAddress }, call: CallContext, sink?: TurnSink): Promise<TurnOutcome>;
  /** One `/v1` completion; `not_found` with "Model not found: <model>" when the model is unknown. */
  complete(request: CompletionRequest, call: CallContext, sink?: TurnSink): Promise<TurnOutcome>;
  counts(): { readonly running: number; readonly queued: number };
}
