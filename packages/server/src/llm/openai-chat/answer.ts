import { once } from '@gatehouse/contract';
import * as z from 'zod';
import type { ModelResult, ModelUsage, ToolCall } from '../model.ts';
import { toolCallBytes } from '../wire/answer-bound.ts';
import { ReportedInput, ReportedTokens } from '../wire/usage.ts';

const count = ReportedTokens.nullish();

export const WireUsage = once(() =>
  z.object({
    prompt_tokens: ReportedInput,
    completion_tokens: count,
    total_tokens: count,
    prompt_tokens_details: z.object({ cached_tokens: count, cache_write_tokens: count }).nullish(),
    prompt_cache_hit_tokens: count,
    cached_tokens: count,
  }),
);

const ToolCallDelta = once(() =>
  z.object({
    index: z.number().nullish(),
    id: z.string().nullish(),
    function: z.object({ name: z.string().nullish(), arguments: z.unknown().optional() }).nullish(),
  }),
);
export type ToolCallDelta = z.output<ReturnType<typeof ToolCallDelta>>;

/** Some vendors send the content as a list of blocks. */
const Content = once(() => z.union([z.string(), z.array(z.object({ type: z.string(), text: z.string().nullish() }))]).nullish());

export const Whole = once(() =>
  z.object({
    id: z.string().nullish(),
    choices: z
      .array(
        z.object({ message: z.object({ content: Content(), tool_calls: z.array(ToolCallDelta()).nullish() }), finish_reason: z.string().nullish() }),
      )
      .min(1),
    usage: WireUsage().nullish().catch(undefined),
  }),
);

export const Chunk = once(() =>
  z.object({
    id: z.string().nullish(),
    choices: z
      .array(
        z.object({
          index: z.number().nullish(),
          delta: z.looseObject({ content: Content(), tool_calls: z.array(ToolCallDelta()).nullish() }).nullish(),
          finish_reason: z.string().nullish(),
        }),
      )
      .nullish(),
    usage: WireUsage().nullish().catch(undefined),
    x_groq: z.object({ usage: WireUsage().nullish() }).nullish().catch(undefined),
    error: z.unknown().optional(),
  }),
);
export type Chunk = z.output<ReturnType<typeof Chunk>>;

export function contentText(content: z.output<ReturnType<typeof Content>>): string {
  if (content === null || content === undefined) return '';
  return typeof content === 'string' ? content : content.map((block) => (block.type === 'text' ? (block.text ?? '') : '')).join('');
}

/** Vendors differ in whether `completion_tokens` includes reasoning tokens; everything in the total beyond the input is billed as output. */
export function toUsage(wire: z.output<ReturnType<typeof WireUsage>>): ModelUsage {
  const input = wire.prompt_tokens;
  const cacheRead = wire.prompt_tokens_details?.cached_tokens ?? wire.prompt_cache_hit_tokens ?? wire.cached_tokens ?? 0;
  return {
    input,
    output: Math.max(wire.completion_tokens ?? 0, (wire.total_tokens ?? 0) - input),
    cacheRead: Math.min(input, cacheRead),
    cacheWrite: wire.prompt_tokens_details?.cache_write_tokens ?? 0,
    estimated: false,
  };
}

export function toFinish(reason: string | null | undefined, toolCalls: readonly ToolCall[]): ModelResult['finish'] {
  if (reason === 'length' || reason === 'model_length' || reason === 'max_tokens') return 'length';
  if (reason === 'content_filter') return 'content_filter';
  // Several vendors say "stop" after a tool call.
  return toolCalls.length > 0 ? 'tool_calls' : 'stop';
}

/** Assembles tool calls from the deltas of a stream, or from the calls of a whole answer. */
export class ToolCalls {
  readonly #calls: { index: number | undefined; id: string; name: string; arguments: string }[] = [];

  /** Bytes that they take so far. */
  bytes = 0;

  get length(): number {
    return this.#calls.length;
  }

  add(fragment: ToolCallDelta): void {
    const id = fragment.id ?? '';
    const index = fragment.index ?? undefined;
    let call = this.#calls.findLast((open) => (index === undefined ? true : open.index === index));
    // Google numbers all parallel calls 0, Mistral and Ollama omit the number: another id means another call.
    if (call === undefined || (id !== '' && call.id !== '' && id !== call.id)) {
      call = { index, id, name: '', arguments: '' };
      this.#calls.push(call);
      this.bytes += toolCallBytes + id.length;
    }
    if (call.id === '') call.id = id;
    if (call.name === '') {
      call.name = fragment.function?.name ?? '';
      this.bytes += call.name.length;
    }
    const given = fragment.function?.arguments;
    if (given === undefined || given === null) return;
    const text = typeof given === 'string' ? given : JSON.stringify(given);
    call.arguments += text;
    this.bytes += text.length;
  }

  list(responseId: string): readonly ToolCall[] {
    return this.#calls.map((call, i) => ({
      id: call.id === '' ? `call_${responseId}_${i}` : call.id,
      name: call.name,
      arguments: call.arguments === '' ? '{}' : call.arguments,
    }));
  }
}
