import { once } from '@gatehouse/contract';
import * as z from 'zod';
import type { ModelResult, ModelUsage, ThinkingBlock } from '../model.ts';
import { ReportedTokens } from '../wire/usage.ts';

const count = ReportedTokens.nullish();

const WireUsage = once(() =>
  z.object({ input_tokens: count, output_tokens: count, cache_read_input_tokens: count, cache_creation_input_tokens: count }),
);
export type WireUsage = z.output<ReturnType<typeof WireUsage>>;
/** An invalid report replaces the earlier ones by one without input, which means none, so that the tokens are counted here. */
const Usage = once(() => WireUsage().nullish().catch({ input_tokens: 0, cache_read_input_tokens: 0, cache_creation_input_tokens: 0 }));

export const Whole = once(() =>
  z.object({
    id: z.string(),
    content: z.array(
      z.looseObject({
        type: z.string(),
        text: z.string().nullish(),
        id: z.string().nullish(),
        name: z.string().nullish(),
        input: z.unknown().optional(),
        thinking: z.string().nullish(),
        signature: z.string().nullish(),
        data: z.string().nullish(),
      }),
    ),
    stop_reason: z.string().nullish(),
    stop_sequence: z.string().nullish(),
    usage: Usage(),
  }),
);

/** Every event of a stream, as far as it matters here; `type` decides which fields are present. */
export const StreamEvent = once(() =>
  z.object({
    type: z.string(),
    index: z.number().nullish(),
    message: z.object({ id: z.string(), usage: Usage() }).nullish(),
    content_block: z
      .object({
        type: z.string(),
        id: z.string().nullish(),
        name: z.string().nullish(),
        text: z.string().nullish(),
        thinking: z.string().nullish(),
        signature: z.string().nullish(),
        data: z.string().nullish(),
      })
      .nullish(),
    delta: z
      .object({
        type: z.string().nullish(),
        text: z.string().nullish(),
        partial_json: z.string().nullish(),
        thinking: z.string().nullish(),
        signature: z.string().nullish(),
        stop_reason: z.string().nullish(),
        stop_sequence: z.string().nullish(),
      })
      .nullish(),
    usage: Usage(),
    error: z.unknown().optional(),
  }),
);
export type StreamEvent = z.output<ReturnType<typeof StreamEvent>>;

interface WireThinking {
  readonly type: string;
  readonly thinking?: string | null | undefined;
  readonly signature?: string | null | undefined;
  readonly data?: string | null | undefined;
}

/** Returns undefined for a block of another type. */
export function toThinking({ type, thinking, signature, data }: WireThinking): ThinkingBlock | undefined {
  if (type === 'thinking') return { type, thinking: thinking ?? '', signature: signature ?? '' };
  return type === 'redacted_thinking' ? { type, data: data ?? '' } : undefined;
}

/** This wire counts cached input separately; here `input` includes it. */
export function toUsage(wire: WireUsage): ModelUsage {
  const cacheRead = wire.cache_read_input_tokens ?? 0;
  const cacheWrite = wire.cache_creation_input_tokens ?? 0;
  return { input: (wire.input_tokens ?? 0) + cacheRead + cacheWrite, output: wire.output_tokens ?? 0, cacheRead, cacheWrite, estimated: false };
}

export function toFinish(reason: string | null | undefined): ModelResult['finish'] {
  if (reason === 'tool_use') return 'tool_calls';
  if (reason === 'max_tokens' || reason === 'model_context_window_exceeded') return 'length';
  return reason === 'refusal' ? 'content_filter' : 'stop';
}
